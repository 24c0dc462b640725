/**
 * The strings of a Redis database into a cluster, while Redis serves others: SCAN names keys, TYPE and STRLEN say which
 * of them are strings that fit, and GET and PTTL of one key are one transaction, so that no value gets the time to live
 * of another. All are sent many at a time.
 *
 * As SCAN promises: a key that is there from the beginning to the end is imported, with a value that it had meanwhile.
 * What remains of a time to live is counted from before it was asked for: an entry expires no later than at Redis, but
 * for the difference between the clocks of this host and the owner.
 */
import { addon } from '../../../native/addon.js';
import { EntryWriter } from '../transfer/entry-writer.js';
import { parseRedisAddress, RedisConnection } from './connection.js';
import { LeftOutKeys, type LeftOut } from './left-out.js';
import { isError, isSkipped, RedisFailure, type Allowance, type Reply, type SkippedReply } from './replies.js';
import { ScanEnd } from './scan-end.js';

const SCAN_COUNT = 1000;
/** Redis returns some more than it was asked for where its table has long chains. */
const PAGE_KEYS_MAX = 32 * SCAN_COUNT;
/** Of values that are asked for in one go. */
const BATCH_BYTES = 8 << 20;
const BATCH_KEYS = 256;
/** Characters of the name of a type that are shown. */
const TYPE_MAX = 80;
const TIMEOUT_MS = 60_000;

export interface RedisImportOptions {
  readonly namespace: number;
  /** Only keys that are absent. */
  readonly keep: boolean;
  readonly caFile?: string;
  readonly onRead: (share: number, entries: number, bytes: number) => void;
}

export interface RedisDone {
  readonly written: number;
  readonly kept: number;
  readonly expired: number;
  readonly leftOut: LeftOut;
}

interface Found {
  readonly key: Buffer;
  readonly bytes: number;
}

const { keyMax, valueMax } = addon.constants;
/** Keys that are too long for farkv are skipped, so that a page has a bound. */
const PAGE: Allowance = { replies: PAGE_KEYS_MAX + 3, bulkMax: keyMax, bytes: (PAGE_KEYS_MAX + 1) * keyMax };

export async function importFromRedis(
  target: ConstructorParameters<typeof EntryWriter>[0],
  address: string,
  { namespace, keep, caFile, onRead }: RedisImportOptions,
): Promise<RedisDone> {
  const redis = await RedisConnection.open(parseRedisAddress(address), {
    timeoutMs: TIMEOUT_MS,
    ...(caFile === undefined ? {} : { caFile }),
  });
  const writer = new EntryWriter(target, keep);
  const leftOut = new LeftOutKeys();
  const end = new ScanEnd();
  let entries = 0;
  let bytes = 0;

  const fetch = async (batch: readonly Found[]): Promise<void> => {
    const askedAtMs = Date.now();
    const replies = await redis.ask(
      batch.flatMap(({ key }) => [['MULTI'], ['GET', key], ['PTTL', key], ['EXEC']]),
      // One value may be as large as a value can be. Several have what they had: one that has grown since is asked for
      // again, alone.
      { replies: 6 * batch.length, bulkMax: valueMax, bytes: batch.length === 1 ? valueMax : 2 * BATCH_BYTES },
    );
    for (const [i, { key }] of batch.entries()) {
      const [value = null, remains = null] = pairOf(replies[4 * i + 3]);
      if (isSkipped(value)) {
        if (value.skipped > valueMax || batch.length === 1) leftOut.add('larger than 64 MiB', key);
        else await fetch([{ key, bytes: value.skipped }]);
      } else if (isError(value)) leftOut.add('no string any more', key);
      else if (Buffer.isBuffer(value) && typeof remains === 'number' && remains !== 0 && remains !== -2) {
        const expiresAtMs = remains < 0 ? undefined : askedAtMs + remains;
        await writer.put({ namespace, key, value, codec: 0, flags: 0, expiresAtMs });
        entries++;
        bytes += key.length + value.length;
      }
    }
  };

  try {
    const sizeNow = async (): Promise<number | undefined> => {
      const [count] = await redis.ask([['DBSIZE']]);
      return typeof count === 'number' ? count : undefined;
    };
    const total = (await sizeNow()) ?? 0;
    let cursor = '0';
    do {
      const [reply] = await redis.ask([['SCAN', cursor, 'COUNT', String(SCAN_COUNT)]], PAGE);
      const page = pageOf(RedisConnection.expect(reply, 'SCAN'));
      for await (const found of strings(redis, page.keys, leftOut))
        for (const batch of batchesOf(found)) {
          await fetch(batch);
          onRead(total === 0 ? 1 : (end.keys + batch.length) / total, entries, bytes);
        }
      ({ cursor } = page);
      await end.page(cursor, page.keys.length, sizeNow);
    } while (cursor !== '0');
  } finally {
    redis.close();
    await writer.end();
  }
  return { written: writer.written, kept: writer.kept, expired: writer.expired, leftOut: leftOut.reasons };
}

/** Those of the keys that are strings and fit. */
async function* strings(
  redis: RedisConnection,
  keys: readonly PageKey[],
  leftOut: LeftOutKeys,
): AsyncGenerator<Found[], void, undefined> {
  const fitting: Buffer[] = [];
  for (const key of keys) {
    if (Buffer.isBuffer(key) && key.length > 0) fitting.push(key);
    else leftOut.add(`keys of 0 or more than ${keyMax} bytes`, Buffer.isBuffer(key) ? key : key.start);
  }
  for (let at = 0; at < fitting.length; at += SCAN_COUNT)
    yield await stringsAmong(redis, fitting.slice(at, at + SCAN_COUNT), leftOut);
}

async function stringsAmong(redis: RedisConnection, keys: readonly Buffer[], leftOut: LeftOutKeys): Promise<Found[]> {
  const replies = await redis.ask(
    keys.flatMap((key) => [
      ['TYPE', key],
      ['STRLEN', key],
    ]),
  );
  const found: Found[] = [];
  for (const [i, key] of keys.entries()) {
    const type = RedisConnection.expect(replies[2 * i], 'TYPE');
    const bytes = replies[2 * i + 1];
    if (type === 'none') continue;
    if (type !== 'string' || typeof bytes !== 'number')
      leftOut.add(typeof type === 'string' ? `type ${type.slice(0, TYPE_MAX)}` : 'no string any more', key);
    else if (bytes > valueMax) leftOut.add('larger than 64 MiB', key);
    else found.push({ key, bytes });
  }
  return found;
}

function* batchesOf(found: readonly Found[]): Generator<Found[], void, undefined> {
  let batch: Found[] = [];
  let bytes = 0;
  for (const one of found) {
    if (batch.length === BATCH_KEYS || (batch.length > 0 && bytes + one.bytes > BATCH_BYTES)) {
      yield batch;
      batch = [];
      bytes = 0;
    }
    batch.push(one);
    bytes += one.bytes;
  }
  if (batch.length > 0) yield batch;
}

/** What a transaction of two commands was answered. */
function pairOf(reply: Reply | undefined): readonly Reply[] {
  const pair = RedisConnection.expect(reply, 'EXEC');
  if (Array.isArray(pair) && pair.length === 2) return pair as readonly Reply[];
  throw new RedisFailure('ERR_PROTOCOL', 'the Redis server does not answer EXEC with two replies');
}

type PageKey = Buffer | SkippedReply;

function pageOf(reply: Reply): { readonly cursor: string; readonly keys: readonly PageKey[] } {
  const [cursor, keys] = Array.isArray(reply) ? (reply as readonly Reply[]) : [];
  if (
    !Buffer.isBuffer(cursor) ||
    !/^\d{1,20}$/.test(String(cursor)) ||
    !Array.isArray(keys) ||
    !(keys as readonly Reply[]).every((key): key is PageKey => Buffer.isBuffer(key) || isSkipped(key))
  )
    throw new RedisFailure('ERR_PROTOCOL', 'the Redis server does not answer SCAN with a cursor and keys');
  return { cursor: String(cursor), keys };
}
