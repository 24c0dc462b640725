/**
 * What the fuzzer sends on one connection: frames, bytes that need be none, and turns of the event loop between them.
 * A file has an input as V8 serializes it: MessagePack, as the product reads it, refuses some of what frames may say.
 */
import { deserialize, serialize } from 'node:v8';
import { encodeValue } from '../../core/protocol/index.js';

export type Step =
  readonly [kind: 'frame', value: unknown] | readonly [kind: 'bytes', bytes: Uint8Array] | readonly [kind: 'turn'];
export type Input = readonly Step[];

export const encodeInput = (input: Input): Uint8Array => serialize(input);

/** Of a file that encodeInput wrote. */
export const decodeInput = (bytes: Uint8Array): Input => deserialize(bytes) as Input;

/** A value with its length before it, as frames travel; also one that is no frame. */
export function framed(value: unknown): Uint8Array {
  const body = encodeValue(value);
  const out = new Uint8Array(4 + body.length);
  new DataView(out.buffer).setUint32(0, body.length);
  out.set(body, 4);
  return out;
}

export const bytesOf = (step: Step): Uint8Array | undefined =>
  step[0] === 'frame' ? framed(step[1]) : step[0] === 'bytes' ? step[1] : undefined;

export const framesOf = (input: Input): number => input.filter(([kind]) => kind !== 'turn').length;
