/** The calls that change keys (calls.ts). */
import { FarkvError, type BatchFailures, type PutItem } from '../../client/index.js';
import type { Call } from './calls.js';
import { flagsOf, now, overwriting, takenOver, type Caller, type Written } from './caller.js';
import { drawBatch, getEntry } from './calls-reads.js';
import { keyOf, type ChaosKey, type Form } from './keys.js';
import type { ChangeOutcome } from './record.js';

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

/** Half of the batches have nothing but keys and values: those take another way than items with a time to live or flags. */
async function putMany(c: Caller, form: Form): Promise<void> {
  const { record } = c.client;
  const plain = c.random.below(2) === 0;
  const keys = someTwice(drawBatch(c).filter((key) => !plain || key.of !== 't'));
  if (keys.length === 0) return;
  const via = `putMany ${form}`;
  const view = c.view(keys[0]!.space);
  const call = now();
  const asked: (number | undefined)[] = [];
  const items: PutItem<Buffer>[] = [];
  for (const key of keys) {
    let value = c.value(key);
    while (plain && flagsOf(value.id) !== undefined) value = c.value(key);
    const put = { kind: 'put', value: value.id, ttlMs: value.ttlMs } as const;
    asked.push(key.of === 'y' ? undefined : record.ask({ lane: c.lane, via }, key.id, call, put));
    items.push({ key: c.named(key, form), value: value.bytes, ...c.how(value, {}) });
  }
  record.flush();
  try {
    // Also from an iterable that is no array.
    const given = takenOver(items).flatMap(({ key, value }) => [key, value]);
    await overwriting(view.putMany(c.random.below(4) === 0 ? items.values() : items, c.batchLimits(keys)), given);
    const end = now();
    for (const id of asked) if (id !== undefined) record.told(id, end, 'stored');
    record.count(via);
  } catch (error) {
    batchFailed(c, via, call, error, asked, 'stored');
  }
}

/** What became of each change of a batch that failed: `made` is of those that did not. */
function batchFailed(
  c: Caller,
  via: string,
  call: number,
  error: unknown,
  asked: readonly (number | undefined)[],
  made: 'stored' | 'gone',
): void {
  const end = now();
  const whole = c.codeOf(via, call, error);
  const codes = failuresOf(error)?.map(([index, one]) => [index, c.codeOf(via, call, one)] as const);
  const codeOf = codes === undefined ? undefined : new Map(codes);
  const taken =
    error instanceof FarkvError ? ((error.cause as Partial<BatchFailures> | undefined)?.taken ?? asked.length) : 0;
  if (codeOf !== undefined && (codeOf.size !== codes?.length || [...codeOf.keys()].some((i) => !(i in asked))))
    c.wrong(via, call, `of ${asked.length} keys these failed: ${codes?.map(([index]) => index).join(', ')}`);
  for (const [index, id] of asked.entries()) {
    if (id === undefined) continue;
    // Without a word of keys each of them may have been changed. Items that were not taken have no word of their own.
    const code = codeOf === undefined ? whole : (codeOf.get(index) ?? (index >= taken ? whole : undefined));
    if (code === undefined) c.client.record.told(id, end, made);
    else
      c.client.record.told(
        id,
        end,
        codeOf === undefined || (code === 'ERR_INDETERMINATE' && index < taken) ? 'open' : 'no-effect',
        code,
      );
  }
}

/** Which of a batch failed, and why; undefined: the error is not of its keys. */
function failuresOf(error: unknown): (readonly [index: number, error: unknown])[] | undefined {
  if (!(error instanceof FarkvError) || !(error.cause instanceof AggregateError)) return undefined;
  const { errors, indexes } = error.cause as BatchFailures;
  return errors.map((one: unknown, i) => [indexes[i] ?? -1, one] as const);
}

async function remove(c: Caller, form: Form): Promise<void> {
  const key = c.key();
  const [view, name] = [c.view(key.space), c.named(key, form)];
  await c.change(`delete ${form}`, key, { kind: 'delete' }, () =>
    overwriting(view.delete(name, c.limits()), name).then((found) => (found ? 'deleted' : 'absent')),
  );
}

/** How many were there is told, and which only where all were or none; else see deletes.ts. */
async function deleteMany(c: Caller, form: Form): Promise<void> {
  const { record } = c.client;
  const keys = someTwice(drawBatch(c)).slice(0, 1 + c.random.below(c.random.below(4) === 0 ? 200 : 4));
  const via = `deleteMany ${form}`;
  const by = { lane: c.lane, via };
  const view = c.view(keys[0]!.space);
  const call = now();
  const asked = keys.map(({ of, id }) => (of === 'y' ? undefined : record.ask(by, id, call, { kind: 'delete' })));
  const names = keys.map((key) => c.named(key, form));
  record.flush();
  try {
    const found = await overwriting(view.deleteMany(names, c.batchLimits(keys)), takenOver(names));
    const end = now();
    if (found > keys.length) c.wrong(via, call, `${found} of ${keys.length} keys were there`);
    const outcome = found === 0 ? 'absent' : found === keys.length ? 'deleted' : 'gone';
    for (const id of asked) if (id !== undefined) record.told(id, end, outcome);
    const ids = keys.map(({ id }) => id);
    if (outcome === 'gone') record.deletedSome(by, { call, end, keys: ids, found });
    record.count(via);
  } catch (error) {
    batchFailed(c, via, call, error, asked, 'gone');
  }
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

/** A value that expires when the one before it would have; mostly it has a time to live of its own. */
function keeping(c: Caller, key: ChaosKey, version: bigint): Written {
  const value = c.value(key);
  return version !== 0n && c.random.below(3) === 0 ? { ...value, ttlMs: undefined } : value;
}

/**
 * Each try is a swap of its own, of which the next try says that it lost. Half of them leave the flags as they are, and
 * some the time to live: then an absent key stays absent, since its value would never expire.
 */
async function update(c: Caller, form: Form): Promise<void> {
  const { record } = c.client;
  const drawn = c.key();
  const key = drawn.of === 'y' ? keyOf('g', c.client.generation(), c.random.below(18)) : drawn;
  const via = `update ${form}`;
  const [view, name] = [c.view(key.space), c.named(key, form)];
  const by = { lane: c.lane, via };
  const keepsFlags = c.random.below(2) === 0;
  const keepsTtl = c.random.below(3) === 0;
  const ttlMs = key.of === 't' && !keepsTtl ? c.value(key).ttlMs : undefined;
  const began = now();
  let call = began;
  let asked: number | undefined;
  let answered: boolean | undefined;
  const told = (outcome: ChangeOutcome, code?: string): void => {
    if (asked !== undefined) record.told(asked, now(), outcome, code);
    asked = undefined;
  };
  try {
    const { changed, version } = await overwriting(
      view.update(
        name,
        (value, entry) => {
          told('no-effect');
          c.saw(via, key, value, call, now(), entry);
          call = now();
          answered = c.random.below(10) > 0 && !(keepsTtl && key.of === 't' && entry === undefined);
          if (!answered) return undefined;
          let next = c.value(key, keepsFlags ? (entry?.flags ?? 0) : undefined);
          while (!keepsFlags && flagsOf(next.id) !== undefined) next = c.value(key);
          const how = { kind: 'swap', expected: entry?.version ?? 0n, value: next.id, ttlMs } as const;
          asked = record.ask(by, key.id, call, how);
          record.flush();
          return next.bytes;
        },
        { ...c.limits(), ...(ttlMs === undefined ? {} : { ttlMs }), ...(keepsFlags ? {} : { flags: 0 }) },
      ),
      name,
    );
    if (changed !== answered)
      c.wrong(via, began, `changed is ${changed}, and the function ${answered ? 'gave a value' : 'gave none'}`, key);
    told(changed ? { swapped: true, version } : 'no-effect');
    record.count(via);
  } catch (error) {
    const code = c.codeOf(via, began, error);
    told(code === 'ERR_INDETERMINATE' ? 'open' : 'no-effect', code);
  }
}

async function compareAndSwap(c: Caller, form: Form): Promise<void> {
  const by = await comparing(c, form);
  if (by === undefined) return;
  const { key, version } = by;
  const value = keeping(c, key, version);
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
  { name: 'put', weight: 18, run: (c, form) => put(c, form), changes: true, plain: (kv, key) => kv.put(key, '1') },
  { name: 'putMany', weight: 3, run: putMany, changes: true, plain: (kv, key) => kv.putMany([{ key, value: '1' }]) },
  { name: 'delete', weight: 6, run: remove, changes: true, plain: (kv, key) => kv.delete(key) },
  { name: 'deleteMany', weight: 2, run: deleteMany, changes: true, plain: (kv, key) => kv.deleteMany([key]) },
  {
    name: 'compareAndSwap',
    weight: 16,
    run: compareAndSwap,
    changes: true,
    plain: (kv, key) => kv.compareAndSwap(key, 0n, '1'),
  },
  { name: 'update', weight: 6, run: update, changes: true, plain: (kv, key) => kv.update(key, () => '1') },
  {
    name: 'compareAndDelete',
    weight: 3,
    run: compareAndDelete,
    changes: true,
    plain: (kv, key) => kv.compareAndDelete(key, 1n),
  },
];
