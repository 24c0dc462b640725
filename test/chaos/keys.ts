/**
 * The keys of a run, and the forms in which a program may name one. A key's id is `namespace:name`; its class is the
 * first letter of the name.
 *
 *   g   hot ones, the same few for all clients; others every KEYS_FOR_MS, since what became of a key is clear the
 *       sooner the fewer changes without an answer there are. Some are long, some are bytes that are no text
 *   t   as g, but every value has a time to live (expiry.ts)
 *   m   as g, in a namespace whose values are written through the codec "msgpack"
 *   y   tiny values, also empty ones; what is read must be the key's own bytes
 *   c   counters, l lists (tails.ts): as g, in a namespace of their own
 *   w   so many that a batch of them takes several crossings, all through the run
 *
 * Of all classes but m some lie in one namespace, so that batches and scans meet all of them.
 */
import type { Random } from '../support/random.js';

export type KeyClass = 'g' | 't' | 'm' | 'y' | 'w' | 'c' | 'l';
/** How a program names a key: client/pending.ts Key. */
export const FORMS = ['text', 'Buffer', 'Uint8Array', 'prepared'] as const;
export type Form = (typeof FORMS)[number];

export interface ChaosKey {
  readonly id: string;
  readonly of: KeyClass;
  readonly space: number;
  readonly bytes: Buffer;
  /** undefined: its bytes are no text. */
  readonly text: string | undefined;
}

export const MSGPACK_NAMESPACE = 4;
/** Of counters and lists. */
export const TAIL_NAMESPACE = 5;
/** Nobody writes into it. */
export const EMPTY_NAMESPACE = 9;
const WIDE_NAMESPACE = 3;
export const NAMESPACES: readonly number[] = [0, 1, 2, WIDE_NAMESPACE, MSGPACK_NAMESPACE];
/** Keys of one crossing: a batch of more goes in pieces (client/batch-reads.ts). */
export const CROSSING = 1024;
/** More than that. */
export const WIDE = 1400;
const COUNTS: Readonly<Record<KeyClass, number>> = { g: 18, t: 8, m: 3, y: 8, w: WIDE, c: 3, l: 3 };
const LONG = 300;

function spaceOf(of: KeyClass, n: number): number {
  switch (of) {
    case 'w':
      return WIDE_NAMESPACE;
    case 'm':
      return MSGPACK_NAMESPACE;
    case 'c':
    case 'l':
      return TAIL_NAMESPACE;
    case 'g':
      return n % 3;
    default:
      return n % 4;
  }
}

/** The n-th of a class; `generation` counts for g, t and m. */
export function keyOf(of: KeyClass, generation: number, n: number): ChaosKey {
  const space = spaceOf(of, n);
  const name = of === 'w' || of === 'y' ? `${of}${n}` : `${of}${generation}-${n}`;
  const ascii = Buffer.from(name);
  if (of === 'g' && n % 4 === 1)
    return key(of, space, name, Buffer.concat([Buffer.from([0xff, 0]), ascii, Buffer.from([0xfe])]), false);
  if (of === 'g' && n % 4 === 3)
    return key(of, space, name, Buffer.concat([ascii, Buffer.alloc(LONG - ascii.length, '~')]), true);
  return key(of, space, name, ascii, true);
}

const key = (of: KeyClass, space: number, name: string, bytes: Buffer, isText: boolean): ChaosKey => ({
  id: `${space}:${name}`,
  of,
  space,
  bytes,
  text: isText ? bytes.toString() : undefined,
});

/** The id of a key that a scan gave; undefined: nobody has written such a key. */
export function idOfBytes(space: number, bytes: Uint8Array): string | undefined {
  const name = /[gtmyw]\d+(?:-\d+)?/u.exec(Buffer.from(bytes).toString('latin1'))?.[0];
  const found = name === undefined ? undefined : keyOfName(name);
  return found?.space === space && found.bytes.equals(bytes) ? found.id : undefined;
}

export const keyOfId = (id: string): ChaosKey => keyOfName(id.slice(id.indexOf(':') + 1));

function keyOfName(name: string): ChaosKey {
  const [first = '', second] = name.slice(1).split('-');
  const of = name[0] as KeyClass;
  return second === undefined ? keyOf(of, 0, Number(first)) : keyOf(of, Number(first), Number(second));
}

export const classOf = (id: string): KeyClass => id[id.indexOf(':') + 1] as KeyClass;

/** All keys of a generation that are not in the wide class. */
export function keysOfGeneration(generation: number): ChaosKey[] {
  return (['g', 't', 'm', 'y'] as const).flatMap((of) =>
    Array.from({ length: COUNTS[of] }, (_, n) => keyOf(of, generation, n)),
  );
}

export const tailKeysOf = (generation: number): ChaosKey[] =>
  (['c', 'l'] as const).flatMap((of) => Array.from({ length: COUNTS[of] }, (_, n) => keyOf(of, generation, n)));

export const isTail = (key: ChaosKey): boolean => key.of === 'c' || key.of === 'l';

export const wideKeys = (): ChaosKey[] => Array.from({ length: WIDE }, (_, n) => keyOf('w', 0, n));

export function drawKey(random: Random, generation: number): ChaosKey {
  const kind = random.below(100);
  const of = kind < 70 ? 'g' : kind < 84 ? 't' : kind < 88 ? 'm' : kind < 94 ? 'y' : 'w';
  return keyOf(of, generation, random.below(COUNTS[of]));
}

export const drawTail = (random: Random, generation: number, of: 'c' | 'l'): ChaosKey =>
  keyOf(of, generation, random.below(COUNTS[of]));

/** Keys of one namespace, in any order and some of them twice. */
export function drawKeys(random: Random, generation: number, space: number, count: number): ChaosKey[] {
  const small = keysOfGeneration(generation).filter((k) => k.space === space);
  const keys = Array.from({ length: count }, (_, i) => {
    if (space === WIDE_NAMESPACE && random.below(8) > 0)
      return keyOf('w', generation, count >= WIDE / 2 ? i % WIDE : random.below(WIDE));
    return random.pick(small);
  });
  for (let i = 0; i < count; i += 5 + random.below(20)) keys[i] = keys[random.below(count)]!;
  return keys;
}
