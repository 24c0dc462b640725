/**
 * Values to bytes and back, for control messages and the log. Plain maps without records, so that the bytes need no
 * earlier message to be read; properties that are undefined are left out. What is decoded is `unknown` and must be
 * checked (check.ts).
 */
import { FarkvError } from '../errors.js';
import { Packr, type Options } from '../msgpackr.js';
import type { FrameLimits } from './limits.js';
import { scanMessagePack } from './scan.js';

const options: Options & { readonly skipValues: readonly unknown[] } = {
  useRecords: false,
  mapsAsObjects: true,
  // Decoded bytes are copies: a slice would keep the whole received chunk alive for as long as an entry of the log.
  copyBuffers: true,
  moreTypes: false,
  encodeUndefinedAsNil: true,
  skipValues: [undefined],
};
const packr = new Packr(options);

export function encodeValue(value: unknown): Uint8Array {
  return packr.pack(value);
}

/** Throws ERR_PROTOCOL for whatever is not one value within the limits. */
export function decodeValue(bytes: Uint8Array, limits: FrameLimits): unknown {
  scanMessagePack(bytes, limits);
  try {
    return packr.unpack(bytes) as unknown;
  } catch (cause) {
    throw new FarkvError('ERR_PROTOCOL', 'malformed message', { cause });
  }
}
