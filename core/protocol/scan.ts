/**
 * Walks MessagePack bytes without building anything, and refuses what must not reach the decoder: too deep, too many
 * elements, too long strings, extensions, map keys that are not short strings, bytes left over, bytes missing.
 *
 * Why it exists: a decoder allocates by what the bytes promise. 1 MB of empty arrays costs msgpackr 77 MB, and bytes
 * left over make it write the value into an error message. Time and memory here are bounded by the length of the input
 * alone.
 */
import { FarkvError } from '../errors.js';
import type { FrameLimits } from './limits.js';

/** Longest key of a map, bytes. */
const KEY_BYTES_MAX = 64;
const PROTO = '__proto__';

function refuse(what: string): never {
  throw new FarkvError('ERR_PROTOCOL', `malformed message: ${what}`);
}

function isProto(b: Uint8Array, at: number, bytes: number): boolean {
  if (bytes !== PROTO.length) return false;
  for (let i = 0; i < PROTO.length; i++) if (b[at + i] !== PROTO.charCodeAt(i)) return false;
  return true;
}

/** Bytes of the numbers 0xca float32 ... 0xd3 int64 after their token. */
const NUMBER_BYTES = [4, 8, 1, 2, 4, 8, 1, 2, 4, 8];

/** Throws ERR_PROTOCOL unless `b` is exactly one MessagePack value within the limits. */
export function scanMessagePack(b: Uint8Array, limits: FrameLimits): void {
  if (b.length > limits.bytes) refuse(`${b.length} bytes, at most ${limits.bytes} are taken`);
  // For each open container: how many values it still has to come; in a map, an even number left means that a key is
  // next.
  const left = new Float64Array(limits.depth + 1);
  const inMap = new Uint8Array(limits.depth + 1);
  let depth = 0;
  let elements = 0;
  let at = 0;
  left[0] = 1;

  const need = (bytes: number): void => {
    if (bytes > b.length - at) refuse('it ends too early');
  };
  const uint = (bytes: number): number => {
    need(bytes);
    let n = 0;
    for (let i = 0; i < bytes; i++) n = n * 256 + (b[at + i] ?? 0);
    at += bytes;
    return n;
  };
  const open = (values: number, map: number): void => {
    if (depth === limits.depth) refuse(`deeper than ${limits.depth}`);
    if (values > b.length - at) refuse('it ends too early');
    if (values > limits.elements - elements) refuse(`more than ${limits.elements} elements`);
    depth += 1;
    left[depth] = values;
    inMap[depth] = map;
  };

  for (;;) {
    while (depth >= 0 && left[depth] === 0) depth -= 1;
    if (depth < 0) break;
    const key = inMap[depth] === 1 && (left[depth] ?? 0) % 2 === 0;
    left[depth] = (left[depth] ?? 0) - 1;
    elements += 1;
    if (elements > limits.elements) refuse(`more than ${limits.elements} elements`);
    const token = uint(1);

    let string = -1;
    if (token >= 0xa0 && token < 0xc0) string = token - 0xa0;
    else if (token >= 0xd9 && token <= 0xdb) string = uint(2 ** (token - 0xd9));
    if (string >= 0) {
      if (string > (key ? KEY_BYTES_MAX : limits.stringBytes)) refuse(`a string of ${string} bytes`);
      need(string);
      if (key && isProto(b, at, string)) refuse(`a key named ${PROTO}`);
      at += string;
      continue;
    }
    if (key) refuse('a key that is not a string');

    if (token < 0x80 || token >= 0xe0) continue; // small integers
    if (token < 0x90) open((token - 0x80) * 2, 1);
    else if (token < 0xa0) open(token - 0x90, 0);
    else if (token === 0xc0 || token === 0xc2 || token === 0xc3)
      continue; // nil, false, true
    else if (token >= 0xc4 && token <= 0xc6) {
      const bytes = uint(2 ** (token - 0xc4));
      need(bytes);
      at += bytes;
    } else if (token >= 0xca && token <= 0xd3) {
      const bytes = NUMBER_BYTES[token - 0xca] ?? 0;
      need(bytes);
      at += bytes;
    } else if (token === 0xdc || token === 0xdd) open(uint(token === 0xdc ? 2 : 4), 0);
    else if (token === 0xde || token === 0xdf) open(uint(token === 0xde ? 2 : 4) * 2, 1);
    else refuse(token === 0xc1 ? 'a byte that MessagePack does not use' : 'an extension');
  }
  if (at !== b.length) refuse(`${b.length - at} bytes left over`);
}
