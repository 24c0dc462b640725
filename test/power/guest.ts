/**
 * What runs in the machine whose power is cut: `node guest.js JSON`, with a GuestTask. It mounts the disks, starts
 * servers of durable values on them, says what each key has, then writes and READs until the power is gone. What was
 * acknowledged or READ is printed at once, as lines of known.ts, and leaves the machine through its console.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { connect, FarkvError } from '../../client/index.js';
import { makeValue } from '../chaos/values.js';
import { ServerProcess } from '../support/cluster.js';
import { Random } from '../support/random.js';
import { textOf, versionAt, versionOf, type Line } from './known.js';

export interface GuestTask {
  /** Labels of the disks; each is of one server. */
  readonly labels: readonly string[];
  /** Counts the starts of the machine. */
  readonly start: number;
  readonly seed: number;
  /** Of the servers. */
  readonly env: Readonly<Record<string, string>>;
}

const LANES = 8;
const KEYS_OF_LANE = 24;
const LARGE_BYTES = 100_000;
/** Emulated processors are slow, and share the host's with others. */
const PATIENCE_MS = 600_000;
const CLIENT = { timeoutMs: PATIENCE_MS, connectTimeoutMs: PATIENCE_MS, unavailableAfterMs: Infinity };
const LEASES = ['--lease-ms', '2000', '--owner-lease-ms', '6000', '--election-ms', '3000'];

const task = JSON.parse(process.argv[2] ?? '') as GuestTask;
const say = (line: Line): void => void process.stdout.write(textOf(line));
const keyOf = (lane: number, n: number): string => `key-${lane}-${n}`;

const servers = task.labels.map((label, i) => {
  const id = `s${i + 1}`;
  const mounted = `/run/${label}`;
  mkdirSync(mounted);
  execFileSync('mount', [`LABEL=${label}`, mounted]);
  const at = { address: `127.0.0.1:${7400 + i}`, peer: `127.0.0.1:${9400 + i}` };
  const peers = task.labels.map((_, n) => `s${n + 1}=127.0.0.1:${9400 + n}`).join(',');
  const dataDir = `${mounted}/${id}`;
  const words = ['--id', id, '--listen', at.address, '--peers', peers, '--data-dir', dataDir, '--level', 'durable'];
  const size = ['--memory', '64mb', '--shards', String(2 * task.labels.length), '--data-plane-threads', '1'];
  return new ServerProcess(id, at, dataDir, [...words, ...size, ...LEASES], task.env);
});
say({ t: 'mounted' });
for (const server of servers) server.launch();
await Promise.all(servers.map((server) => server.ready()));
for (const server of servers)
  void server.exit.then(() => {
    process.stderr.write(`${server.id} ended by itself\n${server.stderr}`);
    process.exit(1);
  });
say({ t: 'ready' });

const kv = await connect({ servers: servers.map(({ address }) => address), ...CLIENT });

/** Of a value that was READ. */
function told(t: 'has' | 'saw', key: string, value: Uint8Array | undefined): void {
  if (value === undefined) {
    if (t === 'has') say({ t, key, version: undefined });
    return;
  }
  const seen = versionOf(key, value);
  say('version' in seen ? { t, key, version: seen.version } : { t: 'wrong', key, what: seen.wrong });
}

for (let lane = 0; lane < LANES; lane++) {
  const keys = Array.from({ length: KEYS_OF_LANE }, (_, n) => keyOf(lane, n));
  const values = await kv.getMany(keys);
  for (const [i, key] of keys.entries()) told('has', key, values[i]);
}
say({ t: 'checked' });

let written = 0;
async function write(lane: number): Promise<never> {
  const random = new Random(task.seed * 1000 + task.start * 10 + lane);
  const keys = Array.from({ length: KEYS_OF_LANE }, (_, n) => keyOf(lane, n));
  for (;;) {
    const key = random.pick(keys);
    const version = versionAt(task.start, ++written);
    try {
      await kv.put(
        key,
        makeValue(key, String(version), random.below(25) === 0 ? LARGE_BYTES : 100 + random.below(2000)),
      );
      say({ t: 'ack', key, version });
      const other = keyOf(random.below(LANES), random.below(KEYS_OF_LANE));
      if (random.below(3) === 0) told('saw', other, await kv.get(other));
    } catch (error) {
      if (!(error instanceof FarkvError)) throw error;
      // It may take effect late: nothing else is written to that key.
      process.stderr.write(`${key}: ${error.code}: ${error.message}\n`);
      keys.splice(keys.indexOf(key), 1);
    }
  }
}
await Promise.all(Array.from({ length: LANES }, (_, lane) => write(lane)));
