/**
 * How long copies take to be made, and what PUTs notice of it: the first copies of a full cluster, and those of a server
 * that was away.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { connect, type BufferValue, type Client } from '../../client/index.js';
import { table } from '../../server/cli/table.js';
import type { Cluster } from '../../test/support/cluster.js';
import { drawing } from '../compare/loops.js';
import { quantile } from '../compare/statistics.js';
import { inParts, keyOf, valueOf } from '../compare/stores.js';
import { copiesMade, wantCopies } from './status.js';

const LANES = 8;
const JOIN_MS = 600_000;
/** How long PUTs are measured before anything is joined. */
const CALM_MS = 5000;
const AWAY_MS = 5000;

interface Measured {
  readonly seconds: number;
  readonly puts: readonly number[];
}

/** PUTs in LANES lanes for as long as the work takes. */
async function meanwhile(
  client: Client<BufferValue, Buffer>,
  keys: readonly string[],
  value: Buffer,
  work: () => Promise<unknown>,
): Promise<Measured> {
  let over = false;
  const puts: number[] = [];
  const draw = drawing(keys);
  const lane = async (): Promise<void> => {
    while (!over) {
      const [key = ''] = draw(1);
      const began = performance.now();
      await client.put(key, value);
      puts.push(performance.now() - began);
    }
  };
  const lanes = Promise.all(Array.from({ length: LANES }, lane));
  const began = performance.now();
  try {
    await Promise.race([work(), lanes]);
    return { seconds: (performance.now() - began) / 1000, puts };
  } finally {
    over = true;
    await lanes;
  }
}

export interface JoinOptions {
  readonly keys: number;
  readonly valueBytes: number;
  readonly transport: 'tcp' | 'shm';
  readonly note: (text: string) => void;
}

/** Over a cluster without copies; answers with what is to be printed. */
export async function join(
  cluster: Cluster,
  { keys: count, valueBytes, transport, note }: JoinOptions,
): Promise<string> {
  const client = await connect({
    servers: cluster.addresses,
    transport,
    strict: true,
    timeoutMs: JOIN_MS,
    unavailableAfterMs: Infinity,
  });
  try {
    const [keys, value] = [Array.from({ length: count }, (_, i) => keyOf(i)), valueOf(valueBytes)];
    note(`loading ${count.toLocaleString('en')} records of ${valueBytes} B`);
    await inParts(count, new AbortController().signal, (part) =>
      client.putMany(part.map((i) => ({ key: keyOf(i), value }))),
    );
    const during = async (title: string, work: () => Promise<unknown>): Promise<readonly [string, Measured]> => {
      note(title);
      return [title, await meanwhile(client, keys, value, work)];
    };
    const whole = (): Promise<unknown> => copiesMade(cluster.addresses.slice(0, -1), JOIN_MS);
    const last = cluster.server(cluster.servers.length - 1);
    const measured = [
      await during('one copy, nothing joins', () => sleep(CALM_MS)),
      await during('the second copy of all shards is made', async () => {
        await wantCopies(cluster.addresses);
        await whole();
      }),
      await during('two copies, nothing joins', () => sleep(CALM_MS)),
      await during(`a server stands still for ${AWAY_MS} ms and joins again`, async () => {
        last.signal('SIGSTOP');
        await sleep(AWAY_MS);
        last.signal('SIGCONT');
        await whole();
      }),
      await during(`a server is killed, started ${AWAY_MS} ms later and joins again`, async () => {
        await last.kill();
        await sleep(AWAY_MS);
        await last.start();
        await whole();
      }),
    ];
    const lines = measured.map(([title, { seconds, puts }]) => [
      title,
      `${seconds.toFixed(1)} s`,
      `${quantile(puts, 0.5).toFixed(2)} ms`,
      `${quantile(puts, 0.99).toFixed(2)} ms`,
      Math.round(puts.length / seconds).toLocaleString('en'),
    ]);
    return `${count.toLocaleString('en')} records of ${valueBytes} B over ${transport}, ${LANES} PUTs in flight\n${table(
      [{ title: '' }, ...['TIME', 'PUT P50', 'PUT P99', 'PUTS/S'].map((title) => ({ title, right: true }))],
      lines,
    )}`;
  } finally {
    await client.close();
  }
}
