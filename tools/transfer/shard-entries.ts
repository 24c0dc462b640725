/**
 * All entries of one shard, with everything that is stored with them. As a scan (client/scan.ts): a key that is present
 * from the beginning to the end comes at least once, with a value that it had meanwhile.
 *
 * Small values come in the replies of the scan. A large one is read by itself, and a GET reports its version but not its
 * codec: an entry counts only if a step of the scan has listed the version that was read. Otherwise the value of one
 * write could get the codec, flags and expiry of another, and a key that is always present be left out as expired.
 *
 * Memory: a step of the scan (256 KiB) for each shard that is read, and the large values for which `room` has room.
 */
import type { StoredEntry } from '../../client/scan.js';
import { FarkvError } from '../../core/errors.js';
import { printable } from './key-text.js';
import type { EntryRecord } from './entry.js';
import { patiently } from './patience.js';
import type { Room } from './room.js';
import type { TransferClient } from './transfer-client.js';

const BATCH = 256;
/** How often a value is read whose key is written again and again. */
const TRIES = 200;
/** A cursor is a place among so many (native/table/scan.c). */
const PLACES = 2 ** 32;

type Source = Pick<TransferClient, 'namespace' | 'scanShard'>;

export interface ShardPart {
  readonly entries: readonly EntryRecord[];
  /** How much of the shard was read, 0 to 1. */
  readonly share: number;
}

/** `space`: a namespace, or EVERY_NAMESPACE. What a part holds is good until the next one is asked for. */
export async function* shardEntries(
  client: Source,
  shard: number,
  space: number,
  room: Room,
): AsyncGenerator<ShardPart, void, undefined> {
  const spaceOf = (listed: StoredEntry): number => (space > 65_535 ? listed.namespace : space);
  const look = (cursor: bigint, values: boolean) =>
    patiently(() => client.scanShard({ shard, cursor, space, batch: BATCH, values }));

  /** The listed versions of the key between two cursors. */
  async function* listed(key: StoredEntry, from: bigint, end: bigint): AsyncGenerator<StoredEntry, void, undefined> {
    let cursor = from;
    do {
      const step = await look(cursor, false);
      yield* step.entries.filter((one) => one.namespace === key.namespace && one.key.equals(key.key));
      cursor = step.next;
    } while (cursor !== 0n && (end === 0n || cursor < end));
  }

  const large = async (entry: StoredEntry, from: bigint, end: bigint): Promise<EntryRecord | undefined> => {
    const versions = new Map([[entry.version, entry]]);
    const view = client.namespace(spaceOf(entry));
    for (let i = 0; i < TRIES; i++) {
      const read = await patiently(() => view.getEntry(entry.key));
      if (read === undefined) return undefined;
      const same = versions.get(read.version);
      if (same !== undefined) return recordOf(same, spaceOf(same), read.value);
      for await (const one of listed(entry, from, end)) versions.set(one.version, one);
    }
    throw new FarkvError(
      'ERR_BUSY',
      `the key "${printable(entry.key)}" is written faster than it can be read with its codec; try again when it is quieter`,
    );
  };

  let cursor = 0n;
  do {
    const { entries, next } = await look(cursor, true);
    const share = next === 0n ? 1 : Number(next) / PLACES;
    const small = entries.flatMap((one) => (one.bytes === undefined ? [] : [recordOf(one, spaceOf(one), one.bytes)]));
    yield { entries: small, share };
    for (const one of entries.filter(({ bytes }) => bytes === undefined)) {
      await room.enter(one.valueBytes);
      try {
        const whole = await large(one, cursor, next);
        if (whole !== undefined) yield { entries: [whole], share };
      } finally {
        room.leave(one.valueBytes);
      }
    }
    cursor = next;
  } while (cursor !== 0n);
}

function recordOf({ key, codec, flags, expiresAtMs }: StoredEntry, namespace: number, value: Buffer): EntryRecord {
  return { namespace, key, value, codec, flags, expiresAtMs };
}
