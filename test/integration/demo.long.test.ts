import test, { type ExecutionContext } from 'ava';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { statusOf, statusWhen } from '../support/status.js';

const DEMO = fileURLToPath(new URL('../../bench/demo.js', import.meta.url));

/** A place for the temporary files of one demonstration, and not of others that run on this machine. */
function demoPlace(t: ExecutionContext): string {
  const place = mkdtempSync(join(tmpdir(), 'farkv-test-'));
  t.teardown(() => rmSync(place, { recursive: true, force: true }));
  return place;
}

/** Processes that the demonstration left: their command lines name its directory. */
function demoProcesses(place: string): string[] {
  return readdirSync('/proc').filter((pid) => {
    try {
      return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(place);
    } catch {
      return false;
    }
  });
}

test.serial('npm run demo shows it all, and leaves nothing', async (t) => {
  const place = demoPlace(t);
  const child = spawn(process.execPath, [DEMO], {
    env: { ...process.env, TMPDIR: place, FARKV_DEMO_RECORDS: '2000', FARKV_DEMO_OPERATIONS: '20000' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let out = '';
  let err = '';
  child.stdout.on('data', (text) => (out += String(text)));
  child.stderr.on('data', (text) => (err += String(text)));
  const [code] = (await once(child, 'close')) as [number];
  t.is(code, 0, err);
  for (const line of [
    /^\[OVERALL\], Throughput/m,
    /^\[READ\], Return=OK, \d+$/m,
    /^\[UPDATE\], Return=OK/m,
    /^\[FARKV\], Provider, shm$/m,
    /^\[FARKV\], ReadsPerGet, /m,
    /^\[SERVERS\], CpuTime\(s\), [\d.]+$/m,
    /^kill -9 of s3, which owned [1-9]\d* shards: .* 2,000 records read back, 0 missing\.$/m,
  ])
    t.regex(out, line);
  t.deepEqual(readdirSync(place), []);
  t.deepEqual(demoProcesses(place), []);
});

/** Process ids and addresses of the servers of the demonstration. */
function demoServers(place: string): { readonly pid: number; readonly address: string }[] {
  return demoProcesses(place).flatMap((pid) => {
    const words = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
    const address = words[words.indexOf('--listen') + 1];
    return words.includes('server') && address !== undefined ? [{ pid: Number(pid), address }] : [];
  });
}

test.serial(
  'npm run demo goes on, and misses nothing, when a server is suspended until others own its shards',
  async (t) => {
    const place = demoPlace(t);
    const child = spawn(process.execPath, [DEMO], {
      env: { ...process.env, TMPDIR: place, FARKV_DEMO_RECORDS: '5000', FARKV_DEMO_OPERATIONS: '500000' },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let out = '';
    let err = '';
    child.stdout.on('data', (text) => (out += String(text)));
    const running = new Promise<void>((resolve) =>
      child.stderr.on('data', (text) => {
        err += String(text);
        if (err.includes('workload B ...')) resolve();
      }),
    );
    const ended = once(child, 'close');
    await running;
    const [still, other] = demoServers(place);
    process.kill(still!.pid, 'SIGSTOP');
    const owner = (await statusOf(other!.address)).members.find((m) => m.control.includes(still!.address))!.id;
    await statusWhen(other!.address, (s) => s.shards.every((shard) => shard.owner !== owner));
    process.kill(still!.pid, 'SIGCONT');
    const [code] = (await ended) as [number];
    t.is(code, 0, err);
    t.regex(out, / 5,000 records read back, 0 missing\.$/m);
    t.deepEqual(demoProcesses(place), []);
  },
);

for (const [when, line, size] of [
  ['the servers start', 'starting 3 servers', {}],
  ['records are loaded', 'load ...', {}],
  ['the workload runs', 'workload B ...', {}],
  ['a server is killed', 'killing one of the servers', { FARKV_DEMO_RECORDS: '50000', FARKV_DEMO_OPERATIONS: '20000' }],
] as const) {
  test.serial(`npm run demo leaves nothing when it is interrupted while ${when}`, async (t) => {
    const place = demoPlace(t);
    const child = spawn(process.execPath, [DEMO], {
      env: { ...process.env, TMPDIR: place, ...size },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    let err = '';
    child.stderr.on('data', (text) => {
      err += String(text);
      if (String(text).includes(line)) child.kill('SIGINT');
    });
    const [code] = (await once(child, 'close')) as [number];
    t.is(code, 130, err);
    t.deepEqual(readdirSync(place), []);
    t.deepEqual(demoProcesses(place), []);
  });
}
