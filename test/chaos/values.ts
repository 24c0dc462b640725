/**
 * Values whose bytes say, over their whole length, whose they are: blocks of `key|id|length|position;`, the position
 * being that of the block. `id` names the writer and the number of its write, so it is unique in a run. A reader that
 * gets the bytes of another key, of two values, or of a wrong length sees it in the value itself, without knowing what
 * was written.
 *
 * Values that are too short for a block (tiny ones, also of no bytes at all) are not unique: each byte follows from the
 * key, the length and its place.
 */

/** The digits of a block's position. */
const POSITION = 8;
const HEAD = /^[^|;]+\|([^|;]+)\|\d{1,9}\|/u;
const BLOCK = /([^|;]+)\|([^|;]+)\|(\d{1,9})\|(\d{8});/gu;
/** No value of less bytes can be read back. */
export const leastBytes = (key: string, id: string): number => `${key}|${id}|999999|`.length + POSITION + 1;
export const TINY_MAX = 8;

export function makeValue(key: string, id: string, bytes: number): Buffer {
  const length = Math.max(bytes, leastBytes(key, id));
  const head = `${key}|${id}|${length}|`;
  const value = Buffer.allocUnsafeSlow(length);
  const size = Buffer.byteLength(head) + POSITION + 1;
  for (let at = 0; at < length; at += size) value.write(`${head}${String(at).padStart(POSITION, '0')};`, at, 'latin1');
  return value;
}

/** What a read gave: the id of the write that it belongs to, or what is wrong with it. */
export type Seen = { readonly id: string } | { readonly wrong: string };

export function readValue(key: string, value: Uint8Array): Seen {
  const bytes = Buffer.from(value.buffer, value.byteOffset, value.byteLength);
  const id = HEAD.exec(bytes.toString('latin1', 0, 600))?.[1];
  if (id !== undefined && makeValue(key, id, bytes.length).equals(bytes)) return { id };
  return { wrong: `${bytes.length} bytes for ${key}: ${contents(bytes)}` };
}

/** Whose bytes these are, piece by piece; for people. */
function contents(bytes: Buffer): string {
  const pieces: { readonly whose: string; readonly from: number; to: number }[] = [];
  for (const match of bytes.toString('latin1').matchAll(BLOCK)) {
    const [block, key, id, length, position] = match;
    const whose = `${key ?? ''} by ${id ?? ''}, of ${length ?? ''} bytes, shifted by ${match.index - Number(position)}`;
    const last = pieces.at(-1);
    if (last?.whose === whose) last.to = match.index + block.length;
    else pieces.push({ whose, from: match.index, to: match.index + block.length });
  }
  if (pieces.length === 0)
    return bytes.length === 0
      ? 'empty'
      : `no block of any value, beginning with ${bytes.subarray(0, 32).toString('hex')}`;
  const shown = pieces.slice(0, 4).map(({ whose, from, to }) => `[${from}, ${to}) ${whose}`);
  // The first block of a piece may begin with bytes of something else.
  return `${shown.join('; ').replaceAll(/[^ -~]/gu, '?')}${pieces.length > shown.length ? `; and ${pieces.length - shown.length} more` : ''}`;
}

/** A value of 0 to TINY_MAX bytes. */
export function makeTiny(key: string, bytes: number): Buffer {
  let seed = bytes;
  for (const c of Buffer.from(key)) seed = (Math.imul(seed, 31) + c) >>> 0;
  return Buffer.from(Array.from({ length: bytes }, (_, i) => (seed + 41 * i) & 0xff));
}

export function readTiny(key: string, value: Uint8Array): Seen {
  if (value.length <= TINY_MAX && makeTiny(key, value.length).equals(value)) return { id: `tiny-${value.length}` };
  return { wrong: `${value.length} bytes for ${key}, whose values are tiny: ${contents(Buffer.from(value))}` };
}
