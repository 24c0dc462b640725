/** A real browser, which has to be installed: apt-get install chromium. */
import type { ExecutionContext } from 'ava';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium, type Page } from 'playwright-core';

const ARGS = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];
const MINUTES = 240_000;

export interface Visit {
  readonly page: Page;
  /** What went wrong in the browser. */
  readonly wrong: readonly string[];
  /** Hosts that it asked. */
  readonly hosts: ReadonlySet<string>;
}

/** Opens `http://AT/`; the browser ends with the test. */
export async function visit(t: ExecutionContext, at: string, password?: string): Promise<Visit> {
  if (spawnSync('chromium', ['--version']).error !== undefined)
    throw new Error('chromium is missing: apt-get install chromium');
  const directory = mkdtempSync(join(tmpdir(), 'farkv-browser-'));
  const context = await chromium.launchPersistentContext(directory, {
    executablePath: '/usr/bin/chromium',
    args: ARGS,
    ...(password === undefined ? {} : { httpCredentials: { username: 'operator', password } }),
  });
  t.teardown(async () => {
    await context.close();
    rmSync(directory, { recursive: true, force: true });
  });
  const page = await context.newPage();
  page.setDefaultTimeout(MINUTES);
  const wrong: string[] = [];
  const hosts = new Set<string>();
  page.on('pageerror', (error) => wrong.push(error.message));
  page.on('console', (line) => {
    if (line.type() === 'error') wrong.push(line.text());
  });
  page.on('request', (request) => hosts.add(new URL(request.url()).host));
  await page.goto(`http://${at}/`);
  return { page, wrong, hosts };
}
