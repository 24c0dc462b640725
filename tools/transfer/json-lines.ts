/**
 * Entries as JSON, one a line:
 *
 *   {"key":"user:1","value":"Ada","namespace":7,"codec":1,"flags":3,"expiresAtMs":1790000000000}
 *   {"key64":"/wA=","value64":""}
 *
 * `key` and `value` are text, their bytes are its UTF-8; `key64` and `value64` are base64, for bytes that are no UTF-8
 * and for large values. A field that is 0, or an expiry that is never, is left out. A field that is not known is
 * refused: an `expiresAt` that nobody reads would be an entry that never expires; so is one that stands twice. A byte
 * order mark before the first line is left out.
 */
import { visibleJson } from '../../core/visible-text.js';
import { unknownName } from '../../core/nearest.js';
import { textOf } from './key-text.js';
import type { EntryRecord } from './entry.js';

/** Larger values are written as base64: as text they could take six times their bytes. */
const TEXT_VALUE_MAX = 1 << 20;
/** The largest value as base64, with room for the rest. */
export const LINE_BYTES_MAX = 96 << 20;
const FIELDS = ['key', 'key64', 'value', 'value64', 'namespace', 'codec', 'flags', 'expiresAtMs'];

/** What is wrong with a line. */
export class LineError extends Error {}

export function lineOf({ namespace, key, value, codec, flags, expiresAtMs }: EntryRecord): string {
  const keyText = textOf(key);
  const valueText = value.length > TEXT_VALUE_MAX ? undefined : textOf(value);
  return `${visibleJson({
    ...(keyText === undefined ? { key64: key.toString('base64') } : { key: keyText }),
    ...(valueText === undefined ? { value64: value.toString('base64') } : { value: valueText }),
    ...(namespace === 0 ? {} : { namespace }),
    ...(codec === 0 ? {} : { codec }),
    ...(flags === 0 ? {} : { flags }),
    expiresAtMs,
  })}\n`;
}

/** `namespace`: of a line that has none. Throws LineError. */
export function entryOfLine(line: Uint8Array, namespace: number): EntryRecord {
  const text = textOf(line);
  if (text === undefined) throw new LineError('it is not UTF-8');
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch (cause) {
    throw new LineError(`it is not JSON: ${cause instanceof Error ? cause.message : ''}`, { cause });
  }
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed))
    throw new LineError('it is not a JSON object');
  const from = parsed as Readonly<Record<string, unknown>>;
  for (const name of Object.keys(from))
    if (!FIELDS.includes(name)) throw new LineError(unknownName('field', name, FIELDS));
  const entry = {
    key: bytesOf(from, 'key'),
    value: bytesOf(from, 'value'),
    namespace: numberOf(from, 'namespace', 65_535) ?? namespace,
    codec: numberOf(from, 'codec', 255) ?? 0,
    flags: numberOf(from, 'flags', 2 ** 32 - 1) ?? 0,
    expiresAtMs: numberOf(from, 'expiresAtMs', Number.MAX_SAFE_INTEGER),
  };
  const names = namesIn(text);
  const twice = names.find((name, i) => names.indexOf(name) !== i);
  if (twice !== undefined) throw new LineError(`the field ${twice} stands twice`);
  return entry;
}

/** The names of the fields of an object without objects in it, in valid JSON; JSON.parse keeps the last of equal ones. */
function namesIn(text: string): string[] {
  const names: string[] = [];
  for (let from = text.indexOf('"'); from >= 0;) {
    let end = text.indexOf('"', from + 1);
    while (isEscaped(text, end)) end = text.indexOf('"', end + 1);
    let next = end + 1;
    while (' \t\r'.includes(text[next] ?? 'x')) next++;
    if (text[next] === ':') names.push(JSON.parse(text.slice(from, end + 1)) as string);
    from = text.indexOf('"', next);
  }
  return names;
}

function isEscaped(text: string, at: number): boolean {
  let slashes = 0;
  while (text[at - 1 - slashes] === '\\') slashes++;
  return slashes % 2 === 1;
}

function bytesOf(from: Readonly<Record<string, unknown>>, name: 'key' | 'value'): Buffer {
  const text = from[name];
  const base64 = from[`${name}64`];
  if ((text === undefined) === (base64 === undefined)) throw new LineError(`either ${name} or ${name}64 is needed`);
  if (text !== undefined) {
    if (typeof text !== 'string') throw new LineError(`${name} is not a text`);
    const bytes = Buffer.from(text);
    // Half a surrogate pair has no UTF-8 and would become another character.
    if (textOf(bytes) !== text) throw new LineError(`${name} has half a character; bytes are written as ${name}64`);
    return bytes;
  }
  if (typeof base64 !== 'string') throw new LineError(`${name}64 is not a text`);
  const bytes = Buffer.from(base64, 'base64');
  // What is not base64 is skipped by Node.js, so that bytes are missing.
  if (
    base64.length !== 4 * Math.ceil(bytes.length / 3) ||
    base64.replace(/=+$/, '').length !== Math.ceil((bytes.length * 4) / 3)
  )
    throw new LineError(`${name}64 is not base64`);
  return bytes;
}

function numberOf(from: Readonly<Record<string, unknown>>, name: string, most: number): number | undefined {
  const value = from[name];
  if (value === undefined) return undefined;
  if (typeof value !== 'number' || !Number.isInteger(value) || value < 0 || value > most)
    throw new LineError(`${name} is not an integer from 0 to ${most}`);
  return value;
}

export interface Line {
  /** From 1. */
  readonly number: number;
  /** Without its line feed; undefined: it has more than LINE_BYTES_MAX. */
  readonly bytes: Buffer | undefined;
}

const LINE_FEED = 0x0a;
const MARK = Buffer.from('\ufeff');

/** The lines of a stream; of one that is too long no more than LINE_BYTES_MAX is ever held. */
export async function* linesOf(
  stream: AsyncIterable<Buffer>,
  most = LINE_BYTES_MAX,
): AsyncGenerator<Line, void, undefined> {
  let parts: Buffer[] = [];
  let held = 0;
  let long = false;
  let number = 0;
  const add = (part: Buffer): void => {
    held += part.length;
    long ||= held > most;
    if (long) parts = [];
    else parts.push(part);
  };
  const take = (): Line => {
    const whole = long ? undefined : parts.length === 1 ? parts[0] : Buffer.concat(parts);
    // Some editors put a byte order mark first; in a line it could not be seen.
    const marked = number === 0 && whole?.subarray(0, MARK.length).equals(MARK) === true;
    const line = { number: ++number, bytes: marked ? whole.subarray(MARK.length) : whole };
    parts = [];
    held = 0;
    long = false;
    return line;
  };
  for await (const chunk of stream) {
    let at = 0;
    for (let end = chunk.indexOf(LINE_FEED); end >= 0; end = chunk.indexOf(LINE_FEED, at)) {
      add(chunk.subarray(at, end));
      yield take();
      at = end + 1;
    }
    if (at < chunk.length) add(chunk.subarray(at));
  }
  if (held > 0) yield take();
}
