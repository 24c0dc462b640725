/** The calls that read keys (calls.ts). */
import { ABSENT } from '../../client/index.js';
import type { Call } from './calls.js';
import { now, overwriting, takenOver, type Caller } from './caller.js';
import { drawKeys, drawTail, MSGPACK_NAMESPACE, NAMESPACES, WIDE, type ChaosKey, type Form } from './keys.js';

/** Larger than any value of a run. */
const ROOM = 500_000;
const HELD_MAX = 70_000;
const GUARD = 0xa5;
const GUARD_BYTES = 24;

/** Memory of the caller with bytes before and behind it that are nobody's to write. */
class Target {
  readonly #all: Buffer;
  readonly bytes: Buffer;

  constructor(bytes: number) {
    this.#all = Buffer.alloc(bytes + 2 * GUARD_BYTES, GUARD);
    this.bytes = this.#all.subarray(GUARD_BYTES, GUARD_BYTES + bytes);
  }

  /** These bytes for a second look: in place, but where they would keep much memory alive a copy of them. */
  held(from: number, to: number): Buffer {
    const bytes = this.bytes.subarray(from, to);
    return this.#all.length > HELD_MAX ? Buffer.from(bytes) : bytes;
  }

  /** Whether what lies before `from` and behind the memory is as it was. */
  intact(from: number): boolean {
    return (
      this.#all.subarray(0, GUARD_BYTES + from).every((b) => b === GUARD) &&
      this.#all.subarray(GUARD_BYTES + this.bytes.length).every((b) => b === GUARD)
    );
  }
}

/** Now and then of what grows (tails.ts). */
const drawRead = (c: Caller): ChaosKey =>
  c.random.below(8) > 0 ? c.key() : drawTail(c.random, c.client.generation(), c.random.pick(['c', 'l']));

export async function get(c: Caller, form: Form): Promise<void> {
  const key = drawRead(c);
  const via = `get ${form}`;
  const [view, name, limits] = [c.view(key.space), c.named(key, form), c.limits()];
  const call = now();
  await c.read(via, async () => c.saw(via, key, await overwriting(view.get(name, limits), name), call, now()));
}

async function getSync(c: Caller, form: Form): Promise<void> {
  const key = drawRead(c);
  const via = `getSync ${form}`;
  const [view, name] = [c.view(key.space), c.named(key, form)];
  const call = now();
  await c.read(via, () => c.saw(via, key, view.getSync(name, c.timeout()), call, now()));
}

/** Also tells this lane the version, for a compare-and-swap. */
export async function getEntry(c: Caller, form: Form, key: ChaosKey = c.key(), limits = c.limits()): Promise<void> {
  const via = `getEntry ${form}`;
  const [view, name] = [c.view(key.space), c.named(key, form)];
  const call = now();
  await c.read(via, async () => {
    const entry = await overwriting(view.getEntry(name, limits), name);
    c.saw(via, key, entry?.value, call, now(), entry);
    if (key.of !== 'y') c.known = { key, version: entry?.version ?? 0n };
  });
}

async function has(c: Caller, form: Form): Promise<void> {
  const key = c.key();
  const via = `has ${form}`;
  const [view, name] = [c.view(key.space), c.named(key, form)];
  const call = now();
  await c.read(via, async () =>
    c.sawPresence(via, key, await overwriting(view.has(name, c.limits()), name), call, now()),
  );
}

/** Of a class of keys either every value has a time to live or none. */
async function ttl(c: Caller, form: Form): Promise<void> {
  const key = c.key();
  const via = `ttl ${form}`;
  const [view, name] = [c.view(key.space), c.named(key, form)];
  const call = now();
  await c.read(via, async () => {
    const left = await overwriting(view.ttl(name, c.limits()), name);
    const end = now();
    // None left: it expired, or is about to.
    const expiry =
      typeof left === 'number' ? { from: left === 0 ? 0 : call + (left - 1) * 1e6, to: end + left * 1e6 } : undefined;
    c.sawPresence(via, key, left !== undefined, call, end, expiry);
    if (left !== undefined && (left !== null) !== (key.of === 't'))
      c.wrong(via, call, `${key.id} has ${String(left)} ms left`, key);
  });
}

function into(name: 'getInto' | 'getIntoSync') {
  return async (c: Caller, form: Form): Promise<void> => {
    const key = c.plainKey();
    const via = `${name} ${form}`;
    const [view, named] = [c.view(key.space), c.named(key, form)];
    const small = c.random.below(6) === 0;
    const target = new Target(small ? 40 + c.random.below(100) : ROOM);
    const offset = c.random.below(40);
    const call = now();
    await c.read(
      via,
      async () => {
        try {
          const bytes =
            name === 'getInto'
              ? await overwriting(view.getInto(named, target.bytes, offset, c.limits()), named)
              : view.getIntoSync(named, target.bytes, offset, c.timeout());
          c.saw(via, key, bytes === undefined ? undefined : target.held(offset, offset + bytes), call, now());
        } finally {
          if (!target.intact(offset)) c.wrong(via, call, `${via} wrote outside of the memory that it was given`, key);
        }
      },
      small,
    );
  };
}

/** Few keys, many keys, more than one crossing takes; in one namespace, as the call has it. */
export function drawBatch(c: Caller, namespaces = NAMESPACES): readonly ChaosKey[] {
  const kind = c.random.below(100);
  const generation = c.client.generation();
  if (kind < 2) return drawKeys(c.random, generation, 3, WIDE + 100 + c.random.below(300));
  const space = c.random.pick(namespaces);
  return drawKeys(c.random, generation, space, kind < 15 ? 40 + c.random.below(160) : 1 + c.random.below(12));
}

/** Of one batch all keys have one form, or each its own. */
function namesOf(c: Caller, keys: readonly ChaosKey[], form: Form) {
  const mixed = c.random.below(3) === 0;
  return keys.map((key) => c.named(key, mixed ? c.random.pick(['text', 'Buffer', 'prepared'] as const) : form));
}

export async function getMany(c: Caller, form: Form): Promise<void> {
  const keys = drawBatch(c);
  const via = `getMany ${form}`;
  const [view, names] = [c.view(keys[0]!.space), namesOf(c, keys, form)];
  const call = now();
  await c.read(via, async () => {
    const values = await overwriting(view.getMany(names, c.batchLimits(keys)), takenOver(names));
    const end = now();
    if (values.length !== keys.length) c.wrong(via, call, `${values.length} values for ${keys.length} keys`);
    for (const [i, value] of values.entries()) c.saw(via, keys[i]!, value, call, end);
  });
}

/** The target has room for anything, or just what the values took a moment ago, or less. */
async function getManyInto(c: Caller, form: Form): Promise<void> {
  const keys = drawBatch(
    c,
    NAMESPACES.filter((space) => space !== MSGPACK_NAMESPACE),
  );
  const via = `getManyInto ${form}`;
  const [view, names] = [c.view(keys[0]!.space), namesOf(c, keys, form)];
  let room = keys.length > 20 ? 4 * ROOM : c.random.below(2) === 0 ? 64 << 10 : 12 * ROOM;
  if (c.random.below(3) === 0) {
    const values = await view.getMany(namesOf(c, keys, form), c.timeout()).catch(() => undefined);
    if (values !== undefined)
      room = values.reduce((sum, value) => sum + (value?.length ?? 0), 0) - (c.random.below(4) === 0 ? 1 : 0);
  }
  const target = new Target(Math.max(0, room));
  const spans = new Uint32Array(2 * keys.length + 2).fill(GUARD);
  const call = now();
  await c.read(
    via,
    async () => {
      try {
        const used = await overwriting(
          view.getManyInto(names, target.bytes, spans, c.batchLimits(keys)),
          takenOver(names),
        );
        const end = now();
        const wrong = wrongSpans(spans, keys.length, used, target.bytes.length);
        if (wrong !== undefined) c.wrong(via, call, `${via}: ${wrong}`);
        const values = target.held(0, used);
        for (const [i, key] of keys.entries()) {
          const from = spans[2 * i]!;
          c.saw(via, key, from === ABSENT ? undefined : values.subarray(from, from + spans[2 * i + 1]!), call, end);
        }
      } finally {
        if (!target.intact(0)) c.wrong(via, call, `${via} wrote outside of the memory that it was given`);
      }
    },
    room < keys.length * ROOM,
  );
}

/** Each value lies within the bytes that were used, and no two overlap. */
function wrongSpans(spans: Uint32Array, keys: number, used: number, room: number): string | undefined {
  if (used > room) return `${used} bytes were used of ${room}`;
  if (spans[2 * keys] !== GUARD || spans[2 * keys + 1] !== GUARD)
    return 'numbers behind those of the last key were written';
  const places = Array.from({ length: keys }, (_, i) => ({ from: spans[2 * i]!, bytes: spans[2 * i + 1]! })).filter(
    ({ from }) => from !== ABSENT,
  );
  places.sort((a, b) => a.from - b.from || a.bytes - b.bytes);
  let end = 0;
  for (const { from, bytes } of places) {
    if (from < end) return `a value at ${from} lies in another one that ends at ${end}`;
    end = from + bytes;
  }
  return end > used ? `a value ends at ${end}, and ${used} bytes were used` : undefined;
}

export const READS: readonly Call[] = [
  { name: 'get', weight: 14, run: get, plain: (kv, key) => kv.get(key) },
  { name: 'getSync', weight: 8, synchronous: true, run: getSync, plain: (kv, key) => kv.getSync(key) },
  { name: 'getEntry', weight: 16, run: (c, form) => getEntry(c, form), plain: (kv, key) => kv.getEntry(key) },
  { name: 'has', weight: 4, run: has, plain: (kv, key) => kv.has(key) },
  { name: 'ttl', weight: 3, run: ttl, plain: (kv, key) => kv.ttl(key) },
  { name: 'getInto', weight: 5, run: into('getInto'), plain: (kv, key) => kv.getInto(key, Buffer.alloc(100)) },
  {
    name: 'getIntoSync',
    weight: 4,
    synchronous: true,
    run: into('getIntoSync'),
    plain: (kv, key) => kv.getIntoSync(key, Buffer.alloc(100)),
  },
  { name: 'getMany', weight: 6, run: getMany, plain: (kv, key) => kv.getMany(['plain', key]) },
  {
    name: 'getManyInto',
    weight: 6,
    run: getManyInto,
    plain: (kv, key) => kv.getManyInto([key, 'plain'], Buffer.alloc(100), new Uint32Array(4)),
  },
];
