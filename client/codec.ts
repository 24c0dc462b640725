/**
 * Codecs: how values become bytes and come back. The codec's number is stored with each value, so that a client with
 * another codec is told so instead of being handed bytes it would misread.
 *
 *   buffer   0   bytes as they are; takes text too (UTF-8). Reads every value, whatever wrote it.
 *   msgpack  1   anything that msgpackr encodes: objects, arrays, numbers, text, Buffers, Dates, Sets, bigints (a Map
 *                comes back as an object)
 *
 * Numbers 2 to 15 are kept for farkv; a codec of your own takes one from 16 to 255.
 */
import { Packr } from 'msgpackr';
import { argumentError, FarkvError } from './errors.js';

export interface Codec<In, Out = In> {
  /** 16 to 255; stored with each value. */
  readonly id: number;
  /** For messages. */
  readonly name: string;
  /** The bytes belong to farkv until the put has ended: do not change them before. */
  encode(value: In): Uint8Array;
  decode(bytes: Buffer): Out;
  /**
   * True: what decode returns does not refer to `bytes`. Their memory is then used again at once; without it, it lives
   * as long as the decoded value does.
   */
  readonly copies?: boolean;
}

export type BufferValue = Uint8Array | string;

export const bufferCodec: Codec<BufferValue, Buffer> = {
  id: 0,
  name: 'buffer',
  encode: (value: unknown) => {
    if (typeof value === 'string') return Buffer.from(value);
    if (value instanceof Uint8Array) return value;
    const what = value === null ? 'null' : typeof value;
    throw argumentError(
      `with the codec "buffer" a value is a Buffer, a Uint8Array or text, not ${what}; for other values use the codec "msgpack"`,
    );
  },
  decode: (bytes) => bytes,
};

/** Plain MessagePack without records, so that every language and every version can read it. */
function newPackr(): Packr {
  return new Packr({ useRecords: false, mapsAsObjects: true, moreTypes: true, copyBuffers: true });
}

/** A codec for values of the type T. T is what you say it is: farkv does not check what another client wrote. */
export function msgpackCodec<T>(): Codec<T> {
  const packr = newPackr();
  return {
    id: 1,
    name: 'msgpack',
    copies: true,
    encode: (value) => {
      if (value === undefined) throw argumentError('undefined is not a value: get returns it for a missing key');
      return packr.pack(value);
    },
    decode: (bytes) => packr.unpack(bytes) as T,
  };
}

/** Checks a codec that a program brings. */
export function checkCodec<In, Out>(codec: Codec<In, Out>): Codec<In, Out> {
  const { id, name } = codec;
  if (!Number.isInteger(id) || id < 0 || id > 255)
    throw argumentError('the id of a codec is an integer from 16 to 255');
  if (id < 16 && id !== bufferCodec.id && id !== 1)
    throw argumentError(`codec ids 2 to 15 are kept for farkv; ${name} has ${id}`);
  if (typeof codec.encode !== 'function' || typeof codec.decode !== 'function')
    throw argumentError('a codec has encode and decode');
  return codec;
}

/** encode, with whatever it throws made an error of farkv's. */
export function encodeWith<In, Out>(codec: Codec<In, Out>, value: In): Uint8Array {
  let bytes: Uint8Array;
  try {
    bytes = codec.encode(value);
  } catch (cause) {
    if (cause instanceof FarkvError) throw cause;
    throw argumentError(`the codec ${codec.name} could not encode the value`, cause);
  }
  if (!(bytes instanceof Uint8Array)) throw argumentError(`the codec ${codec.name} did not encode to bytes`);
  return bytes;
}

/** decode, after a look at which codec wrote the value. */
export function decodeWith<In, Out>(codec: Codec<In, Out>, bytes: Buffer, written: number): Out {
  if (written !== codec.id && codec.id !== bufferCodec.id) {
    throw new FarkvError(
      'ERR_CORRUPT',
      `the value was written with codec ${written}, this client reads with ${codec.id} (${codec.name})`,
    );
  }
  try {
    return codec.decode(bytes);
  } catch (cause) {
    if (cause instanceof FarkvError) throw cause;
    throw new FarkvError('ERR_CORRUPT', `the codec ${codec.name} could not decode the value`, { cause });
  }
}
