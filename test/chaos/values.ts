/**
 * Values that tell who wrote them and whether they are whole: `id|length|filling`, the filling drawn from both. A reader that gets bytes of
 * two values, or of none, sees it.
 */
export function makeValue(id: string, bytes: number): Buffer {
  const head = `${id}|${bytes}|`;
  const value = Buffer.alloc(Math.max(bytes, head.length));
  let at = value.write(head);
  let state = seedOf(id, bytes);
  for (; at < value.length; at++) {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    value[at] = state >>> 24;
  }
  return value;
}

/** The id; undefined when these bytes are no value. */
export function readValue(value: Uint8Array): string | undefined {
  const text = Buffer.from(value.buffer, value.byteOffset, Math.min(value.byteLength, 100)).toString('latin1');
  const [, id, bytes] = /^([^|]+)\|(\d+)\|/.exec(text) ?? [];
  if (id === undefined || bytes === undefined) return undefined;
  return makeValue(id, Number(bytes)).equals(value) ? id : undefined;
}

function seedOf(id: string, bytes: number): number {
  let seed = bytes;
  for (let i = 0; i < id.length; i++) seed = (Math.imul(seed, 31) + id.charCodeAt(i)) >>> 0;
  return seed;
}
