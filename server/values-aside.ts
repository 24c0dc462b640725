/**
 * A start whose write-ahead log is damaged. Where other servers have all that was in it, `values/` is put aside, not
 * removed, and this server's copies are made anew of theirs; else the server ends, and an operator decides.
 *
 * Who has a copy by the metadata alone may have lost its power at the same time, and come back without it, or with less
 * (--sync). So such a server has to answer, in the start of which the metadata has the copy.
 */
import { existsSync, lstatSync, renameSync } from 'node:fs';
import { FarkvError } from '../core/errors.js';
import { hasAsMuch, isWhole, policyOf } from '../core/metadata/copy-sets.js';
import type { Copy, MetadataState } from '../core/metadata/state.js';
import { makeDirectory } from '../net/private-directory.js';
import { describeError, type Log } from './log.js';
import type { MetadataGroup } from './metadata/group.js';
import { checkNodeStatus } from './status.js';
import { whenCurrent, type Values } from './values-log.js';

const CALL_MS = 1000;
const LOOK_MS = 1000;
/** So long servers that may have lost their power too have time to come back. */
const WAIT_MS = 60_000;

/** Beside values/, so on the same file system. */
export const asideOf = (directory: string): string => `${directory}.damaged`;

/** What is known of other servers. All of it rejects when this server fails, or is told to stop. */
export interface Others {
  /** The metadata with all that was decided before the call. */
  readonly current: () => Promise<MetadataState>;
  /** Whether it answers, and holds a lease: so it has joined in the start that it is in. */
  readonly holdsLease: (server: string) => Promise<boolean>;
  readonly sleep: (ms: number) => Promise<unknown>;
}

export function othersOf(
  { driver, proposer, peers }: Pick<MetadataGroup, 'driver' | 'proposer' | 'peers'>,
  unlessFailed: <T>(promise: Promise<T>) => Promise<T>,
  sleep: (ms: number) => Promise<unknown>,
  log: Log,
): Others {
  return {
    current: async () => {
      await whenCurrent((ms) => unlessFailed(proposer.propose({ t: 'no-op' }, ms)), log);
      return driver.state;
    },
    holdsLease: async (server) => {
      try {
        return checkNodeStatus(await peers.call(server, 'node-status', {}, CALL_MS), server).leaseHeld === true;
      } catch {
        return false;
      }
    },
    sleep: (ms) => unlessFailed(sleep(ms)),
  };
}

interface Lacking {
  /** Shards of which no other server has a whole copy. */
  readonly alone: readonly number[];
  /** Shards of which others have one, who are not known to be there. */
  readonly unconfirmed: readonly number[];
  /** Those others. */
  readonly servers: readonly string[];
}

/** What is missing before the copies of a server may go. `holding`: the servers that hold a lease. */
export function lackingOf(state: MetadataState, id: string, holding: ReadonlySet<string>): Lacking {
  const alone: number[] = [];
  const unconfirmed: number[] = [];
  const servers = new Set<string>();
  for (const { shard } of state.shards) {
    const copies = state.copySets?.[shard]?.copies ?? [];
    const own = copies.find((c) => c.member === id);
    if (own === undefined || policyOf(state, shard).level !== 'durable') continue;
    // mutation: recovered/shorter-copy-counts
    const others = copies.filter((c) => c.member !== id && isWhole(c) && hasAsMuch(c, own));
    const isHere = ({ member, start }: Copy): boolean =>
      // mutation: recovered/copy-of-an-earlier-start-counts
      holding.has(member) && start === state.members.get(member)?.incarnation;
    if (others.some(isHere)) continue;
    if (others.length === 0) alone.push(shard);
    else unconfirmed.push(shard);
    for (const { member } of others) servers.add(member);
  }
  return { alone, unconfirmed, servers: [...servers].sort() };
}

/** Servers are asked before the metadata: one that joined without its copies before it answered is known to have. */
async function lackingNow({ current, holdsLease }: Others, id: string): Promise<Lacking> {
  const { members } = await current();
  const holding = new Set<string>();
  const ask = async (server: string): Promise<void> => {
    if (await holdsLease(server)) holding.add(server);
  };
  await Promise.all([...members.keys()].filter((server) => server !== id).map(ask));
  return lackingOf(await current(), id, holding);
}

/**
 * Calls `start`, and once more without what was on the disk. Whole logs of other threads and snapshots go with the
 * damaged log: a disk that has lost what it had confirmed is not believed in the rest. Rejects with ERR_DATA_DIR where
 * the log is another's or cannot be read, where some shard is nowhere else, and where something was put aside before:
 * such a disk needs a person.
 */
export async function startsWith<T>(
  { log: { directory }, early }: { readonly log: Pick<Values['log'], 'directory'> } & Pick<Values, 'early'>,
  { id, others, log }: { readonly id: string; readonly others: Others; readonly log: Log },
  start: () => Promise<T>,
): Promise<T> {
  const aside = asideOf(directory);
  try {
    return await start();
  } catch (error) {
    const { code, message } = error as { code?: unknown; message: string };
    if (code !== 'ERR_CORRUPT' && code !== 'ERR_DATA_DIR') throw error;
    const refuse = (why: string): never => {
      throw refusal(directory, message, why, error);
    };
    if (code === 'ERR_DATA_DIR') refuse('');
    // mutation: recovered/put-aside-twice
    if (existsSync(aside)) refuse(`A damaged log was put aside before, as ${aside}: look at the disk. `);
    if (!lstatSync(directory).isDirectory()) refuse('It is not put aside, since it is a link. ');
    await untilOthersHave(others, id, refuse, (servers) =>
      log.warn(`${directory}: ${message}. Waiting for ${servers} to be there with what was in it`),
    );
    log.error(
      `${directory}: ${message}. Other servers have copies of all that was there: it is put aside as ${aside}, and copies are made anew of theirs. Look at the disk, and remove ${aside} when farkv status shows as many copies in sync as are wanted`,
      { event: 'values-put-aside' },
    );
    try {
      renameSync(directory, aside);
      makeDirectory(directory); // which syncs both names
    } catch (cause) {
      refuse(`It cannot be put aside: ${describeError(cause)}. `);
    }
    early.movedAway();
  }
  return start();
}

async function untilOthersHave(
  others: Others,
  id: string,
  refuse: (why: string) => never,
  waits: (servers: string) => void,
): Promise<void> {
  let told = '';
  for (let waited = 0; ; waited += LOOK_MS) {
    const { alone, unconfirmed, servers } = await lackingNow(others, id);
    if (alone.length > 0) refuse(`No other server has all of ${shards(alone)}. `);
    if (unconfirmed.length === 0) return;
    if (waited >= WAIT_MS)
      refuse(
        `Other servers have all of ${shards(unconfirmed)}, and are not there: start this server again when ${servers.join(', ')} ${servers.length === 1 ? 'is' : 'are'}. `,
      );
    const names = servers.join(', ');
    if (names !== told) waits(names);
    told = names;
    await others.sleep(LOOK_MS);
  }
}

const shards = (numbers: readonly number[]): string => `shard${numbers.length === 1 ? '' : 's'} ${numbers.join(', ')}`;

function refusal(directory: string, message: string, why: string, cause: unknown): FarkvError {
  return new FarkvError(
    'ERR_DATA_DIR',
    `${directory}: ${message}. ${why}Put back what this server wrote there. Or, to go on without it, move ${directory} away and start this server again: its copies are made anew of other servers', and shards without another copy wait for farkv shard reset`,
    { cause },
  );
}
