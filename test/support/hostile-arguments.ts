/** What a program in JavaScript may pass by mistake, or to see what happens: nothing in the SDK's types allows it. */
import { types } from 'node:util';
import { FarkvError } from '../../client/index.js';
import { knownCode } from '../../core/protocol/frames.js';

/** Thrown by whatever is hostile, so that it can be told from errors of farkv's. */
export class Hostile extends Error {
  override name = 'Hostile';
}
const fail = (): never => {
  throw new Hostile('hostile');
};

function revoked<T extends object>(target: T): T {
  const { proxy, revoke } = Proxy.revocable(target, {});
  revoke();
  return proxy;
}

const throwing = <T extends object>(target: T): T =>
  new Proxy(target, Object.fromEntries(Reflect.ownKeys(Reflect).map((trap) => [trap, fail])));

function detached(): Uint8Array {
  const bytes = new Uint8Array(8);
  structuredClone(bytes.buffer, { transfer: [bytes.buffer] });
  return bytes;
}

const cyclic = (): object => {
  const self: Record<string, unknown> = {};
  self.self = self;
  return self;
};

/** Objects that have one property, which is hostile in turn. */
const PROPERTIES = [
  'timeoutMs',
  'signal',
  'ttlMs',
  'flags',
  'values',
  'batch',
  'cursor',
  'prefix',
  'key',
  'value',
  'length',
  'id',
  'name',
  'encode',
  'decode',
  'copies',
  'then',
  'toString',
  'toJSON',
  'source',
  'servers',
  'tls',
  'codec',
  'trace',
  'Store',
  'cookie',
];

/** Without those that have others in them. */
export const SIMPLE: readonly (readonly [string, () => unknown])[] = [
  ['undefined', () => undefined],
  ['null', () => null],
  ['true', () => true],
  ...[0, -1, 0.5, Number.NaN, Infinity, -Infinity, 2 ** 32, 2 ** 53, 1e308].map((n) => [String(n), () => n] as const),
  ...[0n, -1n, 1n << 64n, 1n << 70n].map((n) => [`${n}n`, () => n] as const),
  ["''", () => ''],
  ['half a pair', () => '\ud83d'],
  ['a long text', () => 'x'.repeat(5000)],
  ['a symbol', () => Symbol('hostile')],
  ['a function that throws', () => fail],
  ['{}', () => ({})],
  ['no prototype', () => Object.create(null) as object],
  ['[]', () => []],
  ['a cyclic object', cyclic],
  ['a cyclic array', () => [[cyclic()]]],
  ['a Date', () => new Date(Number.NaN)],
  ['a Map', () => new Map([[1, 2]])],
  ['no bytes', () => new Uint8Array(0)],
  ['detached bytes', detached],
  ['other words', () => new Uint16Array(4)],
  ['a DataView', () => new DataView(new ArrayBuffer(8))],
  ['shared bytes', () => new Uint8Array(new SharedArrayBuffer(8))],
  ['a prepared key of nobody', () => new Int8Array(40).fill(-1)],
  ['a revoked object', () => revoked({})],
  ['a revoked array', () => revoked([])],
  ['a revoked function', () => revoked(() => undefined)],
  ['a throwing object', () => throwing({})],
  ['a throwing array', () => throwing(['key'])],
  ['a throwing function', () => throwing(() => undefined)],
  ['a proxy of bytes', () => new Proxy(new Uint8Array(4), {})],
  ['a signal that is none', () => Object.create(AbortSignal.prototype) as object],
  ['bytes without a length', () => Object.defineProperty(new Uint8Array(4), 'length', { get: fail })],
  ['bytes without a buffer', () => Object.defineProperty(new Uint8Array(4), 'buffer', { get: fail })],
  ['an array without slice', () => Object.assign(['key'], { slice: () => null })],
];

const WITHIN: readonly string[] = [
  'null',
  'NaN',
  '-1',
  'a symbol',
  '{}',
  'a cyclic object',
  'a revoked object',
  'a throwing object',
  'a throwing function',
  'a function that throws',
  'a signal that is none',
  '1e+308',
];

/** Each with a name; made anew, since a call may change it. */
export const HOSTILE: readonly (readonly [name: string, make: () => unknown])[] = [
  ...SIMPLE,
  ...PROPERTIES.flatMap((property) => [
    [`a getter of ${property}`, () => Object.defineProperty({}, property, { get: fail, enumerable: true })] as const,
    ...SIMPLE.filter(([name]) => WITHIN.includes(name)).map(
      ([name, make]) => [`{ ${property}: ${name} }`, () => ({ [property]: make() })] as const,
    ),
  ]),
  ...SIMPLE.map(([name, make]) => [`[${name}]`, () => [make()]] as const),
  ['an element that throws', () => Object.defineProperty([1], 0, { get: fail })],
  ['an iterator that throws', () => ({ [Symbol.iterator]: fail })],
  ['an iterator of nothing', () => ({ [Symbol.iterator]: () => ({ next: fail }) })],
];

/** What is wrong with how a call ended; undefined: it was answered, or failed as calls do. */
export async function wrongEnd(call: () => unknown): Promise<string | undefined> {
  try {
    await call();
    return undefined;
  } catch (error) {
    if (!types.isNativeError(error)) return `${typeof error} that is no error`;
    if (!(error instanceof FarkvError)) return String(error.stack);
    return knownCode(error.code) === 'ERR_INTERNAL' ? `${error.code}: ${error.message}` : undefined;
  }
}

/** The methods of an object: those of its class and the classes above it, up to `end`, and its own. */
export function methodsOf(object: object, end: object = Object.prototype): string[] {
  const names = new Set<string>();
  for (let at: object | null = object; at !== null && at !== end; at = Object.getPrototypeOf(at) as object | null)
    for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(at)))
      if (typeof value === 'function' && name !== 'constructor') names.add(name);
  return [...names];
}
