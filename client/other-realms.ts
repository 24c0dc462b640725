/**
 * Values that were made in another realm (node:vm, the sandbox of a test runner) for the codec "msgpack": a Map made
 * there is no instance of this realm's Map, and msgpackr would store it as an object without properties. What they are
 * is asked of the engine (node:util types), and a like value of this realm is written in their place.
 *
 * msgpackr keeps one list of extensions, and farkv has a msgpackr of its own (core/msgpackr.ts). This extension takes only
 * such values, so what farkv's other encoders write stays as it is.
 */
import { types } from 'node:util';
import { addExtension } from '../core/msgpackr.js';

const TYPED = new Map(
  [
    Uint8Array,
    Uint8ClampedArray,
    Uint16Array,
    Uint32Array,
    Int8Array,
    Int16Array,
    Int32Array,
    Float32Array,
    Float64Array,
    BigInt64Array,
    BigUint64Array,
  ].map((of) => [of.name, of] as const),
);

/** The like value of this realm; undefined: it is none of those that the codec stores. */
function ownOf(value: unknown): object | undefined {
  if (types.isMap(value)) return new Map(value);
  if (types.isSet(value)) return new Set(value);
  if (types.isDate(value)) return new Date(value.getTime());
  if (types.isRegExp(value)) return new RegExp(value.source, value.flags);
  if (types.isNativeError(value)) {
    const error = new Error(value.message, value.cause === undefined ? {} : { cause: value.cause });
    error.name = value.name;
    return error;
  }
  if (types.isTypedArray(value)) {
    const of = TYPED.get(value[Symbol.toStringTag]);
    return of === undefined ? undefined : new of(value.buffer as ArrayBuffer, value.byteOffset, value.length);
  }
  if (types.isDataView(value)) return new DataView(value.buffer, value.byteOffset, value.byteLength);
  if (types.isArrayBuffer(value)) return new Uint8Array(value).slice().buffer;
  return undefined;
}

/** In the place of a class: what is no object of this realm is looked at, value by value. */
const ofAnotherRealm = {
  [Symbol.hasInstance]: (value: unknown) => !(value instanceof Object) && ownOf(value) !== undefined,
};

addExtension({ Class: ofAnotherRealm, write: (value: unknown) => ownOf(value) } as never);
