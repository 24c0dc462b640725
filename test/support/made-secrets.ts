/** A directory of `farkv secrets init`, for one test. */
import type { ExecutionContext } from 'ava';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { farkv } from './cluster.js';

export async function madeSecrets(t: ExecutionContext, ...init: string[]): Promise<string> {
  const directory = mkdtempSync(join(tmpdir(), 'farkv-secrets-'));
  t.teardown(() => rmSync(directory, { recursive: true }));
  const secrets = join(directory, 'made');
  const made = await farkv(['secrets', 'init', secrets, ...init]);
  t.is(made.code, 0, made.stderr);
  return secrets;
}
