/**
 * The gate between bytes that somebody sent and core/raft: what comes in is hostile until it went through here.
 *
 * It checks shape and what a message says about itself (entries that follow each other, terms that do not fall, a
 * configuration that is one). It cannot check what only the algorithm knows. The result is a fresh object of known
 * fields, so that nothing else that a peer put into a message gets further.
 */
import { isBytes } from './bytes.js';
import { decodeConfiguration, isConfiguration, isMemberId } from './configuration.js';
import { EntryType, type Entry } from './entry.js';
import type { RaftMessage, SnapshotMeta } from './messages.js';

/**
 * More entries in one message are refused; a leader bounds its messages by bytes, and entries cost 64 bytes at least.
 */
const ENTRIES_MAX = 1 << 20;

type Fields = Readonly<Record<string, unknown>>;

/** Thrown inside, never out of this file. */
class Malformed extends Error {}

function number(fields: Fields, name: string): number {
  const value = fields[name];
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 0)
    throw new Malformed(`${name} is not a non-negative safe integer`);
  return value;
}

function boolean(fields: Fields, name: string): boolean {
  const value = fields[name];
  if (typeof value !== 'boolean') throw new Malformed(`${name} is not a boolean`);
  return value;
}

function bytes(fields: Fields, name: string): Uint8Array {
  const value = fields[name];
  if (!isBytes(value)) throw new Malformed(`${name} is not bytes`);
  return value;
}

function record(value: unknown, what: string): Fields {
  if (typeof value !== 'object' || value === null) throw new Malformed(`${what} is not an object`);
  return value as Fields;
}

function entriesAfter(fields: Fields, prevIndex: number, prevTerm: number, term: number): Entry[] {
  const list = fields.entries;
  if (!Array.isArray(list) || list.length > ENTRIES_MAX)
    throw new Malformed('entries is not a list of a bounded length');
  const entries: Entry[] = [];
  let index = prevIndex;
  let last = prevTerm;
  for (const item of list as unknown[]) {
    const raw = record(item, 'an entry');
    const type = number(raw, 'type');
    if (type !== EntryType.Normal && type !== EntryType.Config) throw new Malformed(`entry type ${type} is unknown`);
    const entry: Entry = { index: number(raw, 'index'), term: number(raw, 'term'), type, data: bytes(raw, 'data') };
    if (entry.index !== index + 1) throw new Malformed('entries do not follow each other');
    if (entry.term < last || entry.term > term)
      throw new Malformed('the terms of entries fall, or are newer than their message');
    if (type === EntryType.Config && decodeConfiguration(entry.data) === undefined)
      throw new Malformed('an entry carries no valid configuration');
    entries.push(entry);
    index = entry.index;
    last = entry.term;
  }
  return entries;
}

function snapshotMeta(fields: Fields, term: number): SnapshotMeta {
  const raw = record(fields.snapshot, 'snapshot');
  const config = raw.config;
  if (!isConfiguration(config)) throw new Malformed('a snapshot carries no valid configuration');
  const meta = {
    index: number(raw, 'index'),
    term: number(raw, 'term'),
    config: { voters: config.voters, outgoing: config.outgoing, learners: config.learners },
  };
  if (meta.index === 0 || meta.term === 0 || meta.term > term)
    throw new Malformed('a snapshot is of nothing, or newer than its message');
  return meta;
}

function read(fields: Fields): RaftMessage {
  const [from, to, term] = [number(fields, 'from'), number(fields, 'to'), number(fields, 'term')];
  if (!isMemberId(from) || !isMemberId(to) || from === to) throw new Malformed('from and to are not two members');
  if (term === 0) throw new Malformed('nobody speaks in term 0');
  const envelope = { from, to, term };
  const type = fields.type;
  switch (type) {
    case 'append': {
      const [prevIndex, prevTerm] = [number(fields, 'prevIndex'), number(fields, 'prevTerm')];
      if (prevTerm > term || (prevIndex === 0) !== (prevTerm === 0)) throw new Malformed('prevTerm does not fit');
      return {
        type,
        ...envelope,
        prevIndex,
        prevTerm,
        commit: number(fields, 'commit'),
        entries: entriesAfter(fields, prevIndex, prevTerm, term),
      };
    }
    case 'append-accept':
      return { type, ...envelope, index: number(fields, 'index') };
    case 'append-reject': {
      const [index, hintIndex, hintTerm] = [
        number(fields, 'index'),
        number(fields, 'hintIndex'),
        number(fields, 'hintTerm'),
      ];
      if (hintIndex > index || hintTerm > term) throw new Malformed('a hint at what the sender cannot have');
      return { type, ...envelope, index, hintIndex, hintTerm };
    }
    case 'heartbeat':
      return { type, ...envelope, commit: number(fields, 'commit'), round: number(fields, 'round') };
    case 'heartbeat-reply':
      return { type, ...envelope, round: number(fields, 'round') };
    case 'vote':
    case 'pre-vote': {
      const [lastIndex, lastTerm] = [number(fields, 'lastIndex'), number(fields, 'lastTerm')];
      if (lastTerm >= term) throw new Malformed('a log that is not older than the election');
      return { type, ...envelope, lastIndex, lastTerm, transfer: boolean(fields, 'transfer') };
    }
    case 'vote-reply':
    case 'pre-vote-reply':
      return { type, ...envelope, granted: boolean(fields, 'granted') };
    case 'snapshot-chunk': {
      const [total, offset, chunk] = [number(fields, 'bytes'), number(fields, 'offset'), bytes(fields, 'chunk')];
      if (offset + chunk.length > total || (chunk.length === 0 && total > 0))
        throw new Malformed('a chunk lies outside its snapshot');
      return { type, ...envelope, snapshot: snapshotMeta(fields, term), bytes: total, offset, chunk };
    }
    case 'snapshot-reply':
      return { type, ...envelope, index: number(fields, 'index'), received: number(fields, 'received') };
    case 'read-index':
      return { type, ...envelope, incarnation: number(fields, 'incarnation'), request: number(fields, 'request') };
    case 'read-index-reply':
      return {
        type,
        ...envelope,
        incarnation: number(fields, 'incarnation'),
        request: number(fields, 'request'),
        index: number(fields, 'index'),
      };
    case 'timeout-now':
    case 'stale':
      return { type, ...envelope };
    default:
      throw new Malformed('type is unknown');
  }
}

export type CheckedMessage =
  { readonly ok: true; readonly message: RaftMessage } | { readonly ok: false; readonly why: string };

/**
 * The message in a decoded value, or why it is none. A connection that sent a wrong one should be closed
 * (ERR_PROTOCOL).
 */
export function checkRaftMessage(value: unknown): CheckedMessage {
  try {
    return { ok: true, message: read(record(value, 'a message')) };
  } catch (error) {
    if (error instanceof Malformed) return { ok: false, why: error.message };
    throw error;
  }
}
