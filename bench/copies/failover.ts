/**
 * What clients notice when a server with copies fails: one fault a round, with all copies in sync before each. The
 * server comes back before the round is over, so its copies' joining is measured too.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { connect, FarkvError } from '../../client/index.js';
import { table } from '../../server/cli/table.js';
import type { ClusterStatus } from '../../server/status.js';
import type { Cluster, ServerProcess } from '../../test/support/cluster.js';
import { quantile } from '../compare/statistics.js';
import { asked, copiesMade } from './status.js';
import { Traffic } from './traffic.js';

export const FAULTS = ['owner', 'leader', 'backup', 'stop', 'drain', 'sigterm'] as const;
export type FaultName = (typeof FAULTS)[number];

const TEXTS: Readonly<Record<FaultName, string>> = {
  owner: 'kill -9 of an owner that does not lead',
  leader: 'kill -9 of the metadata leader',
  backup: 'kill -9 of a server, seen by the shards of which it has the backup',
  stop: 'SIGSTOP of an owner that does not lead',
  drain: 'farkv drain of an owner that does not lead',
  sigterm: 'SIGTERM of an owner that does not lead',
};
const KEYS = 60;
const ANSWER_MS = 60_000;
/** A server that is drained and keeps shards for so long keeps them. */
const DRAIN_MS = 10_000;

interface Round {
  /** Until all shards that the fault was about had answered. */
  readonly first: number;
  readonly pause: number;
  readonly put: number;
}

interface Scene {
  readonly cluster: Cluster;
  readonly traffic: Traffic;
  readonly what: FaultName;
  readonly note: (text: string) => void;
}

const ownedBy = ({ shards }: ClusterStatus, id: string): number[] =>
  shards.flatMap(({ shard, owner }) => (owner === id ? [shard] : []));

/** The one that owns most; a server that was back lately owns few. */
function chosen({ cluster, what }: Scene, status: ClusterStatus): ServerProcess {
  const able = cluster.servers.filter(({ id }) => (what === 'leader') === (id === status.leader));
  const [first, ...rest] = able;
  if (first === undefined) throw new Error('no server leads');
  return rest.reduce((a, b) => (ownedBy(status, b.id).length > ownedBy(status, a.id).length ? b : a), first);
}

/** Makes the fault; what it answers with takes it back. */
async function strike(scene: Scene, server: ServerProcess, others: readonly string[]): Promise<() => Promise<unknown>> {
  switch (scene.what) {
    case 'stop':
      server.signal('SIGSTOP');
      return () => {
        server.signal('SIGCONT');
        return Promise.resolve();
      };
    case 'drain': {
      const drain = (draining: boolean): Promise<unknown> =>
        asked(others, (c) => c.call('drain', { id: server.id, draining }));
      await drain(true);
      const left = (status: ClusterStatus): boolean => ownedBy(status, server.id).length === 0;
      await asked(others, (c) => c.until(left, DRAIN_MS, `that ${server.id} has no shards`, () => [])).catch(
        (error: unknown) => {
          if ((error as FarkvError).code !== 'ERR_TIMEOUT') throw error;
          scene.note(`${server.id} kept its shards for ${DRAIN_MS} ms`);
        },
      );
      return () => drain(false);
    }
    case 'sigterm':
      await server.stop();
      return () => server.start();
    case 'owner':
    case 'leader':
    case 'backup':
      await server.kill();
      return () => server.start();
  }
}

/** Where the server owns nothing, and the fault is one of owners, it gets a shard before. */
async function whole(scene: Scene): Promise<{ readonly status: ClusterStatus; readonly server: ServerProcess }> {
  const { cluster, what } = scene;
  for (;;) {
    const status = await copiesMade(cluster.addresses);
    const server = chosen(scene, status);
    const shard = status.shards[0]?.shard;
    if (what === 'leader' || what === 'backup' || shard === undefined || ownedBy(status, server.id).length > 0)
      return { status, server };
    await asked(cluster.addresses, async (c) => {
      await c.call('shard-move', { shard, to: server.id });
      const has = (now: ClusterStatus): boolean => ownedBy(now, server.id).length > 0;
      await c.until(has, ANSWER_MS, `that ${server.id} has shard ${shard}`, () => []);
    });
  }
}

async function disturb(scene: Scene): Promise<Round> {
  const { cluster, traffic, what } = scene;
  const { status, server } = await whole(scene);
  const others = cluster.servers.filter((one) => one !== server).map(({ address }) => address);
  const owned = ownedBy(status, server.id);
  const all = status.shards.map(({ shard }) => shard);
  const backed = status.shards.flatMap(({ shard, owner, copies }) =>
    owner !== server.id && copies?.copies.some(({ member }) => member === server.id) === true ? [shard] : [],
  );
  const seen = what === 'backup' ? backed : all;
  traffic.mark();
  const undo = await strike(scene, server, others);
  // A leader may own nothing.
  const first = await traffic.answered(what === 'backup' ? backed : owned.length > 0 ? owned : all, ANSWER_MS);
  await undo();
  await copiesMade(others);
  return { first, pause: traffic.longestPause(seen), put: traffic.longestPut(seen) };
}

export interface FailoverOptions {
  readonly rounds: number;
  readonly what: FaultName;
  readonly transport: 'tcp' | 'shm';
  readonly note: (text: string) => void;
}

/** Over a cluster with copies; answers with what is to be printed. */
export async function failover(cluster: Cluster, { rounds, what, transport, note }: FailoverOptions): Promise<string> {
  const client = await connect({
    servers: cluster.addresses,
    transport,
    strict: true,
    timeoutMs: ANSWER_MS,
    unavailableAfterMs: Infinity,
  });
  const traffic = new Traffic(
    client,
    Array.from({ length: KEYS }, (_, i) => `key ${i}`),
  );
  const done: Round[] = [];
  try {
    while (done.length < rounds) {
      const round = await disturb({ cluster, traffic, what, note });
      done.push(round);
      const errors = [...traffic.errors].map(([code, count]) => `, ${count} ${code}`).join('');
      note(
        `round ${done.length}: first answer ${ms(round.first)}, pause ${ms(round.pause)}, PUT ${ms(round.put)}${errors}`,
      );
    }
  } finally {
    await Promise.race([traffic.stop(), sleep(ANSWER_MS, undefined, { ref: false })]);
    await client.close();
  }
  return `${TEXTS[what]}, over ${transport}, ${done.length} rounds, ${KEYS} keys\n${figures([
    ['first answer of its shards', done.map(({ first }) => first)],
    ['longest pause of a key', done.map(({ pause }) => pause)],
    ['longest pause of a PUT', done.map(({ put }) => put)],
  ])}`;
}

const ms = (value: number): string => `${value.toFixed(value < 10 ? 2 : 0)} ms`;

function figures(rows: readonly (readonly [string, readonly number[]])[]): string {
  return table(
    [{ title: '' }, { title: 'P50', right: true }, { title: 'MAX', right: true }],
    rows.map(([title, values]) => [title, ms(quantile(values, 0.5)), ms(Math.max(...values))]),
  );
}
