/**
 * Codecs: how values become bytes and come back. The codec's number is stored with each value, so that a client with
 * another codec is told so instead of being handed bytes it would misread.
 *
 *   buffer   0   bytes as they are; takes text too (UTF-8, so without half surrogate pairs). Reads every value, whatever wrote it.
 *   msgpack  1   anything that msgpackr encodes: objects, arrays, numbers, text, Buffers, Dates, Sets, bigints (a Map
 *                comes back as an object)
 *
 *   hash     2   fields of a hash of the Redis gateway (native/wire/fields.h): the SDK reads and writes them as bytes
 *
 * Numbers 3 to 15 are kept for farkv; a codec of your own takes one from 16 to 255.
 */
import { types } from 'node:util';
import { Packr } from '../core/msgpackr.js';
import { argumentError, FarkvError, guardedNow, isFarkvError } from './errors.js';
import './other-realms.js';
import { checkText, checkTexts } from './well-formed.js';

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
    if (typeof value === 'string') {
      checkText(value, 'the value'); // mutation: client/half-pair
      return Buffer.from(value);
    }
    if (types.isUint8Array(value)) return value;
    const what = value === null ? 'null' : typeof value;
    throw argumentError(
      `with the codec "buffer" a value is a Buffer, a Uint8Array or text, not ${what}; for other values use the codec "msgpack"`,
    );
  },
  decode: (bytes) => bytes,
};

/** msgpackr asks it what a function is to be written as, wherever in the value one stands; it would write `undefined`. */
function writeFunction(): never {
  throw argumentError('a function cannot be stored; what the codec "msgpack" stores are data: objects, numbers, text');
}

/** Plain MessagePack without records, so that every language and every version can read it. */
function newPackr(): Packr {
  const packr = new Packr({ useRecords: false, mapsAsObjects: true, moreTypes: true, copyBuffers: true });
  return Object.assign(packr, { writeFunction });
}

/** What MessagePack would take and store nothing of. */
function checkStorable(value: unknown): void {
  if (value === undefined) throw argumentError('undefined cannot be stored: get returns it for a missing key');
  if (types.isPromise(value)) throw argumentError('a promise cannot be stored: await it first');
  if (typeof value === 'symbol') throw argumentError('a symbol cannot be stored');
}

/** A codec for values of the type T. T is what you say it is: farkv does not check what another client wrote. */
export function msgpackCodec<T>(): Codec<T> {
  const packr = newPackr();
  return {
    id: 1,
    name: 'msgpack',
    copies: true,
    encode: (value) => {
      checkStorable(value);
      const bytes = packr.pack(value);
      checkTexts(value, bytes);
      return bytes;
    },
    decode: (bytes) => packr.unpack(bytes) as T,
  };
}

/** By number. */
const NAMES: readonly string[] = ['buffer', 'msgpack', 'hash'];

/**
 * Checks a codec that a program brings; one with a number of farkv's own reads and writes those values its way. Gives a
 * copy: what is changed later changes nothing.
 */
export function checkCodec<In, Out>(codec: Codec<In, Out>): Codec<In, Out> {
  const { id, name, encode, decode, copies } = codec as Readonly<Record<keyof Codec<In, Out>, unknown>>;
  if (typeof id !== 'number' || !Number.isInteger(id) || id < 0 || id > 255)
    throw argumentError('the id of a codec is an integer from 16 to 255');
  if (typeof name !== 'string') throw argumentError('the name of a codec is a text');
  if (id < 16 && NAMES[id] === undefined)
    throw argumentError(`codec ids ${NAMES.length} to 15 are kept for farkv; ${name} has ${id}`);
  if (typeof encode !== 'function' || typeof decode !== 'function')
    throw argumentError('a codec has encode and decode');
  return {
    id,
    name,
    encode: (value) => encode.call(codec, value) as Uint8Array,
    decode: (bytes) => decode.call(codec, bytes) as Out,
    copies: copies === true,
  };
}

/** Of a change that the owner computes: it knows bytes, and no codec. */
export function checkRaw(codec: Codec<never, unknown>, call: string): void {
  if (codec.id === bufferCodec.id) return;
  throw new FarkvError(
    'ERR_CODEC',
    `${call} changes values of the codec "buffer", and this view has ${codecText(codec.id, codec.name)}: use withCodec('buffer')`,
  );
}

/** encode, with whatever it throws made an error of farkv's. */
export function encodeWith<In, Out>(codec: Codec<In, Out>, value: In): Uint8Array {
  let bytes: Uint8Array;
  try {
    bytes = codec.encode(value);
  } catch (cause) {
    if (isFarkvError(cause)) throw cause;
    throw argumentError(`the codec ${codec.name} could not encode the value`, cause);
  }
  if (!types.isUint8Array(bytes)) throw argumentError(`the codec ${codec.name} did not encode to bytes`);
  return bytes;
}

function codecText(id: number, name = NAMES[id]): string {
  return name === undefined ? `number ${id}` : `"${name}" (number ${id})`;
}

/** decode, after a look at which codec wrote the value. */
export function decodeWith<In, Out>(codec: Codec<In, Out>, bytes: Buffer, written: number): Out {
  // mutation: client/another-codec
  if (written !== codec.id && codec.id !== bufferCodec.id) {
    throw new FarkvError(
      'ERR_CODEC',
      `the value was written with the codec ${codecText(written)}, and this client reads with ${codecText(codec.id, codec.name)}: ` +
        'connect or withCodec takes the codec; "buffer" reads the bytes of every value',
    );
  }
  try {
    return codec.decode(bytes);
  } catch (cause) {
    if (isFarkvError(cause)) throw cause;
    throw new FarkvError('ERR_CORRUPT', `the codec ${codec.name} could not decode the value`, { cause });
  }
}

/** A codec by its name, or one of the program's own. */
export function resolveCodec(codec: 'buffer' | 'msgpack' | Codec<never, unknown> | undefined): Codec<never, unknown> {
  if (codec === undefined || codec === 'buffer') return bufferCodec;
  if (codec === 'msgpack') return msgpackCodec<unknown>();
  if (typeof codec !== 'object' || (codec as unknown) === null)
    throw argumentError('codec is "buffer", "msgpack" or an object { id, name, encode, decode }');
  return guardedNow(() => checkCodec(codec));
}
