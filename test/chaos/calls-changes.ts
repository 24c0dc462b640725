/** The calls that change keys (calls.ts). */
import { FarkvError, type PutItem } from '../../client/index.js';
import type { Call } from './calls.js';
import { flagsOf, now, overwriting, type Caller } from './caller.js';
import { drawBatch, getEntry } from './calls-reads.js';
import { keyOf, type ChaosKey, type Form } from './keys.js';

export async function put(c: Caller, form: Form, key: ChaosKey = c.key()): Promise<void> {
  const value = c.value(key);
  const [view, name] = [c.view(key.space), c.named(key, form)];
  await c.change(`put ${form}`, key, { kind: 'put', value: value.id, ttlMs: value.ttlMs }, () =>
    overwriting(view.put(name, value.bytes, c.how(value, c.limits())), name, value.bytes).then(() => 'stored'),
  );
}

/** More of them in one batch, all at the same time, would leave the search for their order too many ways to go. */
const SAME_MAX = 2;

/** Keys of a batch of puts: hardly any of them twice. */
function someTwice(keys: readonly ChaosKey[]): ChaosKey[] {
  const often = new Map<string, number>();
  let twice = 0;
  return keys.filter(({ id }) => {
    const before = often.get(id) ?? 0;
    often.set(id, before + 1);
    return before === 0 || (before < SAME_MAX && twice++ === 0);
  });
}

/**
 * What failed of a batch is not told by key, so then each of its puts may have taken effect. Half of the batches have
 * nothing but keys and values: those take another way than items with a time to live or flags.
 */
async function putMany(c: Caller, form: Form): Promise<void> {
  const { record } = c.client;
  const plain = c.random.below(2) === 0;
  const keys = someTwice(drawBatch(c).filter((key) => !plain || key.of !== 't'));
  if (keys.length === 0) return;
  const via = `putMany ${form}`;
  const view = c.view(keys[0]!.space);
  const call = now();
  const asked: number[] = [];
  const items: PutItem<Buffer>[] = [];
  for (const key of keys) {
    let value = c.value(key);
    while (plain && flagsOf(value.id) !== undefined) value = c.value(key);
    if (key.of !== 'y')
      asked.push(record.ask({ lane: c.lane, via }, key.id, call, { kind: 'put', value: value.id, ttlMs: value.ttlMs }));
    items.push({ key: c.named(key, form), value: value.bytes, ...c.how(value, {}) });
  }
  record.flush();
  try {
    // Also from an iterable that is no array.
    const given = items.flatMap(({ key, value }) => [key, value]);
    await overwriting(view.putMany(c.random.below(4) === 0 ? items.values() : items, c.limits()), given);
    const end = now();
    for (const id of asked) record.told(id, end, 'stored');
    record.count(via);
  } catch (error) {
    const code = c.codeOf(via, call, error);
    const end = now();
    const none = noEffect(error, items.length);
    for (const id of asked) record.told(id, end, none ? 'no-effect' : 'open', code);
  }
}

/** Every put of the batch failed, and none of them may have taken effect. */
function noEffect(error: unknown, items: number): boolean {
  if (!(error instanceof FarkvError)) return false;
  const all: unknown[] = error.cause instanceof AggregateError ? error.cause.errors : [];
  return all.length === items && all.every((one) => one instanceof FarkvError && one.code !== 'ERR_INDETERMINATE');
}

async function remove(c: Caller, form: Form): Promise<void> {
  const key = c.key();
  const [view, name] = [c.view(key.space), c.named(key, form)];
  await c.change(`delete ${form}`, key, { kind: 'delete' }, () =>
    overwriting(view.delete(name, c.limits()), name).then((found) => (found ? 'deleted' : 'absent')),
  );
}

/** Mostly by what was just read, else by what has had time to grow old. */
async function comparing(
  c: Caller,
  form: Form,
): Promise<{ readonly key: ChaosKey; readonly version: bigint } | undefined> {
  const drawn = c.key();
  if (c.known === undefined || c.random.below(3) > 0) {
    c.known = undefined;
    await getEntry(c, form, drawn.of === 'y' ? keyOf('g', c.client.generation(), c.random.below(18)) : drawn);
  }
  return c.known;
}

async function compareAndSwap(c: Caller, form: Form): Promise<void> {
  const by = await comparing(c, form);
  if (by === undefined) return;
  const { key, version } = by;
  const value = c.value(key);
  const [view, name] = [c.view(key.space), c.named(key, form)];
  const asked = { kind: 'swap', expected: version, value: value.id, ttlMs: value.ttlMs } as const;
  await c.change(`compareAndSwap ${form}`, key, asked, () =>
    overwriting(view.compareAndSwap(name, version, value.bytes, c.how(value, c.limits())), name, value.bytes),
  );
}

async function compareAndDelete(c: Caller, form: Form): Promise<void> {
  const by = await comparing(c, form);
  if (by === undefined || by.version === 0n) return;
  const { key, version } = by;
  const [view, name] = [c.view(key.space), c.named(key, form)];
  await c.change(`compareAndDelete ${form}`, key, { kind: 'swap', expected: version, value: undefined }, () =>
    overwriting(view.compareAndDelete(name, version, c.limits()), name),
  );
}

export const CHANGES: readonly Call[] = [
  { name: 'put', weight: 18, keyed: true, run: (c, form) => put(c, form) },
  { name: 'putMany', weight: 3, keyed: true, run: putMany },
  { name: 'delete', weight: 6, keyed: true, run: remove },
  { name: 'compareAndSwap', weight: 16, keyed: true, run: compareAndSwap },
  { name: 'compareAndDelete', weight: 3, keyed: true, run: compareAndDelete },
];
