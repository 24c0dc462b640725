/**
 * Whether other servers have what this one had on its disk. Who has a copy by the metadata alone may have lost its power
 * at the same time, and come back without it, or with less (--sync). So such a server has to answer, and hold a lease in
 * the start of which the metadata has the copy (R-aside, docs/durable-cluster.md).
 */
import { hasAsMuch, isWhole, policyOf } from '../core/metadata/copy-sets.js';
import type { Copy, MetadataState } from '../core/metadata/state.js';
import type { Found } from '../core/shards/index.js';
import type { Log } from './log.js';
import type { MetadataGroup } from './metadata/group.js';
import { checkNodeStatus, type NodeStatus } from './status.js';
import { whenCurrent } from './values-log.js';

const CALL_MS = 1000;
const LOOK_MS = 1000;
/** So long servers that may have lost their power too have time to come back, from when the last one has read its disk. */
const WAIT_MS = 60_000;

/** there: it holds a lease, so it has joined in the start that it is in. away: it has not, or does not answer. */
export type Presence = 'there' | 'recovering' | 'away';

/** What is known of other servers. All of it rejects when this server fails, or is told to stop. */
export interface Others {
  readonly known: () => MetadataState;
  /** The metadata with all that was decided before the call. */
  readonly current: () => Promise<MetadataState>;
  readonly ask: (server: string) => Promise<Presence>;
  readonly sleep: (ms: number) => Promise<unknown>;
  /** Monotonic. */
  readonly nowMs: () => number;
}

export function othersOf(
  { driver, proposer, peers }: Pick<MetadataGroup, 'driver' | 'proposer' | 'peers'>,
  unlessFailed: <T>(promise: Promise<T>) => Promise<T>,
  sleep: (ms: number) => Promise<unknown>,
  log: Log,
): Others {
  return {
    known: () => driver.state,
    current: async () => {
      await whenCurrent((ms) => unlessFailed(proposer.propose({ t: 'no-op' }, ms)), log);
      return driver.state;
    },
    ask: (server) =>
      unlessFailed(
        peers
          .call(server, 'node-status', {}, CALL_MS)
          .then((answer) => presenceOf(checkNodeStatus(answer, server)))
          .catch((): Presence => 'away'),
      ),
    sleep: (ms) => unlessFailed(sleep(ms)),
    nowMs: () => performance.now(),
  };
}

/** Of what a server says of itself. */
export function presenceOf({ leaseHeld, values }: Pick<NodeStatus, 'leaseHeld' | 'values'>): Presence {
  if (leaseHeld === true) return 'there'; // mutation: recovered/unjoined-server-counts
  return values?.recovering === undefined ? 'away' : 'recovering';
}

interface Lacking {
  /** Shards of which no other server has a whole copy. */
  readonly alone: readonly number[];
  /** Shards of which others have one, who are not known to be there. */
  readonly unconfirmed: readonly number[];
  /** Those others. */
  readonly servers: readonly string[];
}

/**
 * What is missing before the copies of a server may go. `there`: the servers that are. `found`: only whole copies count
 * that are not among these.
 */
export function lackingOf(
  state: MetadataState,
  id: string,
  there: ReadonlySet<string>,
  found?: readonly Pick<Found, 'shard' | 'copy'>[],
): Lacking {
  const alone: number[] = [];
  const unconfirmed: number[] = [];
  const servers = new Set<string>();
  for (const { shard } of state.shards) {
    const copies = state.copySets[shard]?.copies ?? [];
    const own = copies.find((c) => c.member === id);
    if (own === undefined || policyOf(state, shard).level !== 'durable') continue;
    if (found !== undefined && (!isWhole(own) || found.some((f) => f.shard === shard && f.copy === own.id))) continue;
    // mutation: recovered/shorter-copy-counts
    const others = copies.filter((c) => c.member !== id && isWhole(c) && hasAsMuch(c, own));
    const isHere = ({ member, start }: Copy): boolean =>
      // mutation: recovered/copy-of-an-earlier-start-counts, recovered/silent-server-counts
      there.has(member) && start === state.members.get(member)?.incarnation;
    if (others.some(isHere)) continue;
    if (others.length === 0) alone.push(shard);
    else unconfirmed.push(shard);
    for (const { member } of others) servers.add(member);
  }
  return { alone, unconfirmed, servers: [...servers].sort() };
}

/**
 * Resolves when the copies of a server may go: with undefined, or with why not, as a sentence. `found` as for lackingOf;
 * `waits` is told of each list of servers that are waited for.
 */
export async function untilElsewhere(
  others: Others,
  id: string,
  found: readonly Pick<Found, 'shard' | 'copy'>[] | undefined,
  waits: (servers: readonly string[]) => void,
): Promise<string | undefined> {
  let told = '';
  for (let untilMs = others.nowMs() + WAIT_MS; ;) {
    // What is known was current when this start began, and a copy is made of no server that has not joined.
    const wanted = lackingOf(others.known(), id, new Set(), found);
    if (wanted.alone.length + wanted.unconfirmed.length === 0) return undefined;
    // Before the metadata is looked at: who joined without its copies before it answered is known to have.
    const presence = new Map<string, Presence>();
    const ask = async (server: string): Promise<unknown> => presence.set(server, await others.ask(server));
    await Promise.all(wanted.servers.map(ask));
    const there = new Set([...presence].flatMap(([server, is]) => (is === 'there' ? [server] : [])));
    const { alone, unconfirmed, servers } = lackingOf(await others.current(), id, there, found);
    if (alone.length > 0) return `No other server has all of ${shards(alone)}.`;
    if (unconfirmed.length === 0) return undefined;
    if (servers.some((server) => presence.get(server) === 'recovering')) untilMs = others.nowMs() + WAIT_MS;
    const names = servers.join(', ');
    if (others.nowMs() >= untilMs)
      return `Other servers have all of ${shards(unconfirmed)}, and are not there: start this server again when ${names} ${servers.length === 1 ? 'is' : 'are'}.`;
    if (names !== told) waits(servers);
    told = names;
    await others.sleep(LOOK_MS);
  }
}

const shards = (numbers: readonly number[]): string => `shard${numbers.length === 1 ? '' : 's'} ${numbers.join(', ')}`;
