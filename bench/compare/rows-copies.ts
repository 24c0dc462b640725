/**
 * What a second copy costs: PUTs, GETs and memory of two farkv clusters, one with two copies of each record and one with
 * one, and PUTs beside Redis with a replica. All with two servers.
 */
import { beside } from './beside.js';
import {
  openCopied,
  openCopiedRedis,
  registeredBytes,
  VALUE_BYTES,
  withStores,
  type OpenFarkv,
} from './copied-stores.js';
import type { Lab } from './lab.js';
import { batches, batchRate, drawing, medianNs, rate } from './loops.js';
import { atLeast, atMost, nanoseconds, perSecond, type Part, type Side } from './row.js';
import { sameGets } from './same-gets.js';
import { keysOf, valueOf, type FarkvClient } from './stores.js';

const OUTSTANDING = 64;
const SEQUENTIAL = 20_000;
const PUTS = 100_000;

export interface PutGoals {
  readonly alone: number;
  readonly throughput: number;
  /** With OUTSTANDING in flight. */
  readonly together?: number;
}

/** PUTs over existing keys, two copies against one. */
export function copiedPuts(lab: Lab, transport: 'tcp' | 'shm', goals: PutGoals): Promise<Part[]> {
  return withStores(async (undo) => {
    const [two, one] = [await openCopied(lab, 2, transport, undo), await openCopied(lab, 1, transport, undo)];
    const [keys, value] = [keysOf(lab.keys), valueOf(VALUE_BYTES)];
    const sides = (run: (client: FarkvClient, draw: (count: number) => string[]) => Promise<number>): [Side, Side] => {
      const side = (name: string, { client }: OpenFarkv): Side => {
        const draw = drawing(keys);
        return { name, run: () => run(client, draw) };
      };
      return [side('two', two), side('one', one)];
    };
    const put = (client: FarkvClient) => (key: string) => client.put(key, value);
    const parts = [
      await beside(
        lab,
        `${transport} put, two copies, one at a time, p50`,
        atMost(goals.alone, "times one copy's"),
        sides((client, draw) => medianNs(draw(SEQUENTIAL), put(client))),
        nanoseconds,
      ),
      await beside(
        lab,
        `${transport} put, two copies, ${OUTSTANDING} outstanding`,
        atLeast(goals.throughput, "times one copy's"),
        sides((client, draw) => rate(draw(PUTS), OUTSTANDING, put(client))),
        perSecond,
      ),
    ];
    if (goals.together === undefined) return parts;
    const together = await beside(
      lab,
      `${transport} put, two copies, ${OUTSTANDING} outstanding, p50`,
      atMost(goals.together, "times one copy's"),
      sides((client, draw) => medianNs(draw(PUTS), put(client), OUTSTANDING)),
      nanoseconds,
    );
    return [...parts, together];
  });
}

/** Each batch is one pipeline with a WAIT 1 behind its SETs; farkv's PUTs of a batch are in flight together. */
export function copiedPutsAgainstRedis(lab: Lab, goals: PutGoals): Promise<Part[]> {
  return withStores(async (undo) => {
    const { client } = await openCopied(lab, 2, 'tcp', undo);
    const redis = await openCopiedRedis(lab, undo);
    const [keys, value] = [keysOf(lab.keys), valueOf(VALUE_BYTES)];
    const [ours, theirs] = [drawing(keys), drawing(keys)];
    const setAndWait = async (some: readonly string[]): Promise<void> => {
      const pipeline = redis.pipeline();
      for (const key of some) pipeline.set(key, value);
      const answers = await pipeline.wait(1, 0).exec();
      const [error, replicas] = answers?.at(-1) ?? [new Error('no answer to WAIT'), 0];
      if (error !== null || Number(replicas) < 1) throw error ?? new Error('WAIT 1 was answered without a replica');
    };
    const put = (key: string): Promise<unknown> => client.put(key, value);
    return [
      await beside(
        lab,
        'tcp put, two copies, one at a time, p50, against Redis SET + WAIT 1',
        atMost(goals.alone, "times Redis's"),
        [
          { name: 'farkv', run: () => medianNs(ours(SEQUENTIAL), put) },
          { name: 'Redis', run: () => medianNs(theirs(SEQUENTIAL), (key) => setAndWait([key])) },
        ],
        nanoseconds,
      ),
      await beside(
        lab,
        `tcp put, two copies, batches of ${OUTSTANDING}, against Redis`,
        atLeast(goals.throughput, "times Redis's"),
        [
          {
            name: 'farkv',
            run: () =>
              batchRate(batches(ours, Math.ceil(PUTS / OUTSTANDING), OUTSTANDING), (some) =>
                Promise.all(some.map(put)),
              ),
          },
          {
            name: 'Redis',
            run: () => batchRate(batches(theirs, Math.ceil(PUTS / OUTSTANDING), OUTSTANDING), setAndWait),
          },
        ],
        perSecond,
      ),
    ];
  });
}

/** GETs of shards with two copies: nobody but the owner has to do with them. */
export function copiedGets(lab: Lab): Promise<Part[]> {
  return withStores(async (undo) => {
    const [two, one] = [await openCopied(lab, 2, 'tcp', undo), await openCopied(lab, 1, 'tcp', undo)];
    return await sameGets(lab, [
      { ...two, name: 'two copies' },
      { ...one, name: 'one copy' },
    ]);
  });
}

/** Registered memory of all servers. */
export function copiedMemory(lab: Lab, goal: number): Promise<Part[]> {
  return withStores(async (undo) => {
    const [two, one] = [await openCopied(lab, 2, 'tcp', undo), await openCopied(lab, 1, 'tcp', undo)];
    const mib = (bytes: number): string => `${(bytes / 2 ** 20).toFixed(1)} MiB`;
    const side = (name: string, { cluster }: OpenFarkv): Side => ({ name, run: () => registeredBytes(cluster) });
    return [
      await beside(
        lab,
        'memory of two copies, 100 B values',
        atMost(goal, "times one copy's"),
        [side('two', two), side('one', one)],
        mib,
      ),
    ];
  });
}
