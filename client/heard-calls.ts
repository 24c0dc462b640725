/**
 * The calls of one key that programs make most, where somebody is told of them (call-channel.ts). They stand apart from
 * those that nobody is told of: a function that makes a closure in one of its branches has V8 allocate what the closure
 * captures before it branches, once that branch was taken. With `latencies` it is taken once in 1,024 calls.
 */
import { callOf, heard, type CallMessage } from './call-channel.js';
import type { Limits, Operations } from './operations.js';
import type { Key, Pending } from './pending.js';
import type { Shared } from './keyspace.js';
import type { ValueReader } from './value-reader.js';

export const messageOf = (call: string, { operations }: Shared, namespace: number, key: Key): CallMessage =>
  callOf({ call, namespace, key }, operations);

export function heardRead<T>(
  call: string,
  shared: Shared,
  space: number,
  key: Key,
  reader: ValueReader<T>,
  limits: Limits,
): Promise<T | undefined> {
  return heard(messageOf(call, shared, space, key), () => shared.operations.read(space, key, reader, limits));
}

export function heardReadInto(
  shared: Shared,
  space: number,
  key: Key,
  target: Uint8Array,
  offset: number,
  limits: Limits,
): ReturnType<Operations['readInto']> {
  const message = messageOf('getInto', shared, space, key);
  return heard(message, () => shared.operations.readInto(space, key, target, offset, limits));
}

export function heardSpun<T>(
  shared: Shared,
  space: number,
  key: Key,
  reader: ValueReader<T>,
  timeoutMs: number,
): T | undefined {
  return heard(messageOf('getSync', shared, space, key), () => shared.spun.read(space, key, reader, timeoutMs));
}

export function heardSpunInto(
  shared: Shared,
  space: number,
  key: Key,
  target: Uint8Array,
  offset: number,
  timeoutMs: number,
): number | undefined {
  const message = messageOf('getIntoSync', shared, space, key);
  return heard(message, () => shared.spun.readInto(space, key, target, offset, timeoutMs));
}

export function heardSubmit<T>(
  call: string,
  shared: Shared,
  space: number,
  key: Key,
  operation: Pending<T>,
  limits: Limits,
): Promise<T> {
  return heard(messageOf(call, shared, space, key), () => shared.operations.submit(operation, limits));
}
