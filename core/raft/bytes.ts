/** What are bytes: a Uint8Array of whatever realm (node:vm, the sandbox of a test runner), which `instanceof` denies. */

/** Reads what kind of typed array the engine says that this is; no property of its own can say otherwise. */
// eslint-disable-next-line @typescript-eslint/unbound-method -- called with what is looked at
const kindOf = Object.getOwnPropertyDescriptor(Object.getPrototypeOf(Uint8Array.prototype), Symbol.toStringTag)
  ?.get as (this: unknown) => string | undefined;

export function isBytes(value: unknown): value is Uint8Array {
  return kindOf.call(value) === 'Uint8Array';
}
