/**
 * A client or an operator as a process of its own, for measures beside a flood (flood.ts): it shares neither event loop
 * nor process with whoever else is measured. It begins, says so with a line, works until its standard input ends, and
 * prints what it saw as one line of JSON.
 *
 *     node honest.js '{"as":"client","servers":["127.0.0.1:7400"],"token":"t","keys":["key 0"]}'
 */
import { readFileSync } from 'node:fs';
import { connect } from '../../client/index.js';
import { statusOf } from './status.js';

export interface Honest {
  /** GETs over tcp, one after the other, or calls of `status`, each over a connection of its own. */
  readonly as: 'client' | 'operator';
  readonly servers: readonly string[];
  readonly token: string;
  readonly caFile?: string | undefined;
  /** Each is there. */
  readonly keys?: readonly string[];
}

export interface HonestReport {
  readonly count: number;
  readonly misses: number;
  readonly msP50: number;
  readonly msP99: number;
  readonly msMax: number;
}

function reportOf(samples: readonly number[], misses: number): HonestReport {
  const ms = [...samples].sort((a, b) => a - b);
  const at = (part: number): number => ms[Math.min(ms.length - 1, Math.floor(ms.length * part))] ?? 0;
  return { count: ms.length, misses, msP50: at(0.5), msP99: at(0.99), msMax: at(1) };
}

/** Something to do again and again; false: what was asked for was not there. */
async function workOf({ as, servers, token, caFile, keys = [] }: Honest): Promise<() => Promise<boolean>> {
  const ca = caFile === undefined ? undefined : readFileSync(caFile);
  if (as === 'operator') {
    const access = { token, ...(ca === undefined ? {} : { ca }) };
    return async () => (await statusOf(servers[0] ?? '', access)).shards.length > 0;
  }
  const kv = await connect({
    servers,
    transport: 'tcp',
    strict: true,
    token,
    timeoutMs: 60_000,
    ...(ca === undefined ? {} : { tls: { ca } }),
  });
  let next = 0;
  return async () => (await kv.get(keys[next++ % keys.length] ?? '')) !== undefined;
}

async function run(honest: Honest): Promise<void> {
  const work = await workOf(honest);
  const life = { over: false };
  process.stdin.on('end', () => (life.over = true)).resume();
  // Connections and maps are there, and the code is compiled.
  for (let i = 0; i < (honest.as === 'client' ? 2000 : 20); i++) await work();
  process.stdout.write('ready\n');
  const ms: number[] = [];
  let misses = 0;
  while (!life.over) {
    const at = performance.now();
    if (!(await work())) misses += 1;
    ms.push(performance.now() - at);
  }
  process.stdout.write(`${JSON.stringify(reportOf(ms, misses))}\n`, () => process.exit(0));
}

void run(JSON.parse(process.argv[2] ?? '{}') as Honest);
