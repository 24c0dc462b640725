/** Keys on a command line and in output: text, or hexadecimal where they are not. */
import { FarkvError } from '../../core/errors.js';
import { replaceHidden } from '../../core/visible-text.js';

export function keyOf(text: string, hex: boolean): string | Buffer {
  if (!hex) return text;
  if (!/^(?:[0-9a-fA-F]{2})+$/.test(text))
    throw new FarkvError('ERR_KEY_INVALID', 'with --hex a key is an even number of hexadecimal digits');
  return Buffer.from(text, 'hex');
}

/** A byte order mark is a part of the text. */
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** The text that the bytes are, undefined when they are none. */
export function textOf(bytes: Uint8Array): string | undefined {
  try {
    return utf8.decode(bytes);
  } catch {
    return undefined;
  }
}

/** For JSON: { key } or { keyHex }, { value } or { valueBase64 }. */
export function jsonKey(key: Uint8Array): { readonly key: string } | { readonly keyHex: string } {
  const text = textOf(key);
  return text === undefined ? { keyHex: Buffer.from(key).toString('hex') } : { key: text };
}

export function jsonValue(value: Uint8Array): { readonly value: string } | { readonly valueBase64: string } {
  const text = textOf(value);
  return text === undefined ? { valueBase64: Buffer.from(value).toString('base64') } : { value: text };
}

/** For a line of text: what would not be seen, and bytes that are no text, are written as \xNN, a backslash as \\. */
export function printable(bytes: Uint8Array): string {
  const text = textOf(bytes);
  if (text !== undefined)
    return replaceHidden(text.replaceAll('\\', '\\\\'), (c) => Array.from(Buffer.from(c), escapeByte).join(''));
  return Array.from(bytes, (b) =>
    b === 0x5c ? '\\\\' : b >= 0x20 && b < 0x7f ? String.fromCharCode(b) : escapeByte(b),
  ).join('');
}

function escapeByte(byte: number): string {
  return `\\x${byte.toString(16).padStart(2, '0')}`;
}
