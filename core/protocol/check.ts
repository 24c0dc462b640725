/**
 * Small checks from which the validators of messages and commands are built: unknown in, a typed value out,
 * ERR_PROTOCOL when it is not one. A validator builds a new object of the fields it knows, so a field of a later
 * version is dropped, never believed.
 */
import { isBytes } from '../raft/bytes.js';
import { FarkvError } from '../errors.js';
import { visible } from '../visible-text.js';

export type Check<T> = (value: unknown, at: string) => T;

export function refuse(at: string, expected: string): never {
  throw new FarkvError('ERR_PROTOCOL', `malformed message: ${at} is not ${expected}`);
}

export type Fields = Readonly<Record<string, unknown>>;

export function fields(value: unknown, at: string): Fields {
  if (typeof value !== 'object' || value === null || Array.isArray(value) || ArrayBuffer.isView(value))
    refuse(at, 'a map');
  return value as Fields;
}

/** Text of at most `max` UTF-16 units, without control characters: it may end up in a log or a terminal. */
export function text(max: number): Check<string> {
  return (value, at) => {
    // eslint-disable-next-line no-control-regex -- control characters are what is looked for
    if (typeof value !== 'string' || value.length > max || /[\u0000-\u001f\u007f-\u009f]/.test(value))
      refuse(at, `text of at most ${max} characters`);
    return value;
  };
}

/** Makes any text fit `text(max)`: for messages that go to the other side. */
export function printable(value: string, max: number): string {
  return visible(value).slice(0, max);
}

export function pattern(expression: RegExp, name: string): Check<string> {
  return (value, at) => {
    if (typeof value !== 'string' || !expression.test(value)) refuse(at, name);
    return value;
  };
}

/** An unsigned integer; 64-bit encodings of small numbers are numbers too. */
export function uint(max = Number.MAX_SAFE_INTEGER): Check<number> {
  return (value, at) => {
    const n = typeof value === 'bigint' && value <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(value) : value;
    if (typeof n !== 'number' || !Number.isSafeInteger(n) || n < 0 || n > max || Object.is(n, -0))
      refuse(at, `an integer from 0 to ${max}`);
    return n;
  };
}

export const boolean: Check<boolean> = (value, at) => {
  if (typeof value !== 'boolean') refuse(at, 'true or false');
  return value;
};

export function bytes(max: number, exactly?: number): Check<Uint8Array> {
  return (value, at) => {
    if (!isBytes(value) || value.length > max || (exactly !== undefined && value.length !== exactly)) {
      refuse(at, exactly === undefined ? `at most ${max} bytes` : `${exactly} bytes`);
    }
    return value;
  };
}

export function list<T>(item: Check<T>, max: number): Check<T[]> {
  return (value, at) => {
    if (!Array.isArray(value) || value.length > max) refuse(at, `a list of at most ${max}`);
    return value.map((each, i) => item(each, `${at}[${i}]`));
  };
}

export function oneOf<T extends string>(...names: readonly T[]): Check<T> {
  return (value, at) => {
    const found = names.find((name) => name === value);
    if (found === undefined) refuse(at, `one of ${names.join(', ')}`);
    return found;
  };
}

/** A field that may be missing (nil counts as missing). */
export interface Maybe<T> {
  readonly maybe: Check<T>;
}
export function maybe<T>(check: Check<T>): Maybe<T> {
  return { maybe: check };
}

/** One check for each field of T; `maybe` for the optional ones. */
export type Shape<T> = {
  readonly [K in keyof T]-?: object extends Pick<T, K> ? Maybe<Exclude<T[K], undefined>> : Check<T[K]>;
};

/** A map with these fields. The result has them in the shape's order and nothing else. */
export function record<T extends object>(shape: Shape<T>): Check<T> {
  const entries = Object.entries<Check<unknown> | Maybe<unknown>>(shape);
  return (value, at) => {
    const from = fields(value, at);
    const out: Record<string, unknown> = {};
    for (const [name, check] of entries) {
      const field = from[name];
      if (typeof check === 'function') out[name] = check(field, `${at}.${name}`);
      else if (field !== undefined && field !== null) out[name] = check.maybe(field, `${at}.${name}`);
    }
    return out as T;
  };
}

/** Exactly this value: for tags. */
export function literal<const T extends string | number | boolean>(expected: T): Check<T> {
  return (value, at) => {
    if (value !== expected) refuse(at, String(expected));
    return expected;
  };
}

/** Anything: it is checked where it is used. */
export const anything: Check<unknown> = (value) => value;

/** An unsigned decimal of 64 bits, as text. */
export const decimal64: Check<string> = (value, at) => {
  if (typeof value !== 'string' || !/^(0|[1-9]\d{0,19})$/.test(value) || BigInt(value) >= 1n << 64n)
    refuse(at, 'an unsigned 64-bit number in decimal');
  return value;
};
export const hex64 = pattern(/^[0-9a-f]{16}$/, '16 hexadecimal digits');
export const hex256 = pattern(/^[0-9a-f]{64}$/, '64 hexadecimal digits');
export const hex128 = pattern(/^[0-9a-f]{32}$/, '32 hexadecimal digits');
