/**
 * Texts that UTF-8 can hold. One with half a surrogate pair it cannot: an encoder writes another character in the half's
 * place, so that two texts become one, and what comes back is not what was given. So they are refused.
 *
 * Keys are checked by the native side (native/node/common.c).
 */
import { types } from 'node:util';
import { argumentError } from './errors.js';

/** Throws ERR_ARGUMENT; `what` is for the message. */
export function checkText(text: string, what: string): void {
  if (!text.isWellFormed())
    throw argumentError(`${what} has half a surrogate pair, which UTF-8 cannot hold; bytes are given as a Uint8Array`);
}

/** U+FFFD, which one encoder writes. */
const REPLACED = Buffer.from('\ufffd');

/** Another writes the half itself, as if it were a character: ED, and a byte from A0 on. */
function hasEncodedHalf(bytes: Buffer): boolean {
  for (let at = bytes.indexOf(0xed); at >= 0; at = bytes.indexOf(0xed, at + 1))
    if ((bytes[at + 1] ?? 0) >= 0xa0) return true;
  return false;
}

/**
 * Throws ERR_ARGUMENT where a text in the value has half a pair. `bytes` are what it was encoded to: they say quickly
 * that none has, and nothing else, since other bytes may look the same.
 */
export function checkTexts(value: unknown, bytes: Buffer): void {
  if (bytes.includes(REPLACED) || hasEncodedHalf(bytes)) checkEach(value, new Set());
}

function checkEach(value: unknown, seen: Set<object>): void {
  if (typeof value === 'string') checkText(value, 'a text in the value');
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value) || seen.has(value)) return;
  seen.add(value);
  if (types.isMap(value) || types.isSet(value)) {
    for (const [key, one] of value.entries()) {
      checkEach(key, seen);
      checkEach(one, seen);
    }
    return;
  }
  if ('toJSON' in value && typeof value.toJSON === 'function') {
    checkEach(Reflect.apply(value.toJSON, value, []) as unknown, seen);
    return;
  }
  if (types.isRegExp(value)) checkEach(value.source, seen);
  if (types.isNativeError(value)) for (const one of [value.name, value.message, value.cause]) checkEach(one, seen);
  for (const [key, one] of Object.entries(value)) {
    checkEach(key, seen);
    checkEach(one, seen);
  }
}
