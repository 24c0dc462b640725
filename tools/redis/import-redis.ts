/**
 * The strings of a Redis database into a cluster, while Redis serves others: SCAN names keys, TYPE and STRLEN say which
 * of them are strings that fit, and GET and PTTL of one key are one transaction, so that no value gets the time to live
 * of another. All are sent many at a time.
 *
 * A key that Redis refuses (a right that is missing, a slot that nobody serves), or that the cluster does, is counted and
 * named, and the rest goes on. A refusal that every key would have ends the import.
 *
 * As SCAN promises: a key that is there from the beginning to the end is imported, with a value that it had meanwhile.
 * What remains of a time to live is counted from before it was asked for: an entry expires no later than at Redis, but
 * for the difference between the clocks of this host and the owner.
 */
import { TTL_MAX } from '../../client/arguments.js';
import { addon } from '../../native/addon.js';
import { EntryWriter, isOfEntry } from '../transfer/entry-writer.js';
import { isOfKey, parseRedisAddress, RedisConnection, refusal } from './connection.js';
import { LeftOutKeys, type LeftOut } from './left-out.js';
import {
  isError,
  isSkipped,
  RedisFailure,
  type Allowance,
  type ErrorReply,
  type Reply,
  type SkippedReply,
} from './replies.js';
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
  /** Go on after a key that Redis or the cluster refused. */
  readonly skip: boolean;
  readonly caFile?: string;
  readonly onRead: (share: number, entries: number, bytes: number) => void;
}

export interface RedisDone {
  readonly written: number;
  readonly kept: number;
  readonly expired: number;
  readonly leftOut: LeftOut;
  /** It ended at a key that was refused; some keys were not looked at. */
  readonly stopped: boolean;
}

interface Found {
  readonly key: Buffer;
  readonly bytes: number;
}

const { keyMax, valueMax } = addon.constants;
/** Keys that are too long for farkv are skipped, so that a page has a bound. */
const PAGE: Allowance = { replies: PAGE_KEYS_MAX + 3, bulkMax: keyMax, bytes: (PAGE_KEYS_MAX + 1) * keyMax };
const NO_STRING = 'no string any more';
const TOO_LARGE = 'larger than 64 MiB';
const TOO_LONG_LIFE = `a time to live over ${TTL_MAX.toLocaleString('en')} ms (2,230 years)`;

export async function importFromRedis(
  target: ConstructorParameters<typeof EntryWriter>[0],
  address: string,
  { namespace, keep, skip, caFile, onRead }: RedisImportOptions,
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

  const take = async (key: Buffer, value: Reply, remains: Reply, askedAtMs: number): Promise<void> => {
    if (isSkipped(value)) leftOut.add(TOO_LARGE, key);
    else if (isError(value)) refuseKey(leftOut, key, value, 'GET');
    else if (isError(remains)) refuseKey(leftOut, key, remains, 'PTTL');
    else if (typeof remains === 'number' && remains > TTL_MAX) leftOut.refuse(TOO_LONG_LIFE, key);
    else if (Buffer.isBuffer(value) && typeof remains === 'number' && remains !== 0 && remains !== -2) {
      const expiresAtMs = remains < 0 ? undefined : askedAtMs + remains;
      await writer.put({ namespace, key, value, codec: 0, flags: 0, expiresAtMs }, (error) => {
        if (!isOfEntry(error)) return false;
        leftOut.refuse(error.code, key, error.message);
        return true;
      });
      entries++;
      bytes += key.length + value.length;
    }
  };

  const fetch = async (batch: readonly Found[]): Promise<void> => {
    const askedAtMs = Date.now();
    const replies = await redis.ask(
      batch.flatMap(({ key }) => [['MULTI'], ['GET', key], ['PTTL', key], ['EXEC']]),
      // One value may be as large as a value can be. Several have what they had: one that has grown since is asked for
      // again, alone.
      { replies: 6 * batch.length, bulkMax: valueMax, bytes: batch.length === 1 ? valueMax : 2 * BATCH_BYTES },
    );
    for (const [i, { key }] of batch.entries()) {
      const [multi, get, pttl, exec] = replies.slice(4 * i, 4 * i + 4);
      RedisConnection.expect(multi, 'MULTI');
      // A command that is refused when it is queued says why; the transaction itself only that it was.
      if (get !== undefined && isError(get)) refuseKey(leftOut, key, get, 'GET');
      else if (pttl !== undefined && isError(pttl)) refuseKey(leftOut, key, pttl, 'PTTL');
      else if (exec !== undefined && isError(exec)) refuseKey(leftOut, key, exec, 'EXEC');
      else {
        const [value = null, remains = null] = pairOf(exec);
        if (isSkipped(value) && value.skipped <= valueMax && batch.length > 1)
          await fetch([{ key, bytes: value.skipped }]);
        else await take(key, value, remains, askedAtMs);
      }
    }
  };
  const stops = (): boolean => !skip && leftOut.refused > 0;
  /** Some keys were not looked at. */
  let stopped = false;

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
          stopped ||= stops();
          if (stopped) break;
          await fetch(batch);
          onRead(total === 0 ? 1 : (end.keys + batch.length) / total, entries, bytes);
        }
      ({ cursor } = page);
      await end.page(cursor, page.keys.length, sizeNow);
      stopped ||= stops() && cursor !== '0';
    } while (cursor !== '0' && !stopped);
  } finally {
    redis.close();
    await writer.end();
  }
  const { written, kept, expired } = writer;
  return { written, kept, expired, leftOut: leftOut.reasons, stopped };
}

/** Counts the key as left out for what Redis says against it; throws what Redis would say of every key. */
function refuseKey(leftOut: LeftOutKeys, key: Buffer, error: ErrorReply, command: string): void {
  if (!isOfKey(error)) throw refusal(error, command);
  // The first word is the reason; the rest may have the key's slot or another server's address in it.
  const [reason = ''] = error.error.split(' ', 1);
  if (reason === 'WRONGTYPE') leftOut.add(NO_STRING, key);
  // mutation: backup/refused-by-redis
  else leftOut.refuse(reason, key, `refused by Redis: ${error.error}`);
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
    const [type = null, bytes = null] = replies.slice(2 * i, 2 * i + 2);
    if (isError(type)) refuseKey(leftOut, key, type, 'TYPE');
    else if (type === 'none') continue;
    else if (type !== 'string')
      leftOut.add(typeof type === 'string' ? `type ${type.slice(0, TYPE_MAX)}` : NO_STRING, key);
    else if (isError(bytes)) refuseKey(leftOut, key, bytes, 'STRLEN');
    else if (typeof bytes !== 'number') leftOut.add(NO_STRING, key);
    else if (bytes > valueMax) leftOut.add(TOO_LARGE, key);
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
  if (Array.isArray(reply) && reply.length === 2) return reply as readonly Reply[];
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
