/**
 * Whose bytes a program sees: the bytes of each value say which key they belong to, so that bytes of another key, and
 * bytes that change after they were handed out, are seen at once. One server, no fault.
 */
import test, { type ExecutionContext } from 'ava';
import { MessageChannel } from 'node:worker_threads';
import { ABSENT, connect, type BufferValue, type Client } from '../../client/index.js';
import type { Provider } from '../../core/providers.js';
import { DEVICELESS } from '../support/deviceless.js';
import { Cluster } from '../support/cluster.js';
import { seeded } from '../support/random.js';

const teardowns: (() => unknown)[] = [];
let shared: Cluster;
test.before(async () => {
  shared = await Cluster.start({ teardown: (f) => void teardowns.push(f) }, { memory: '512mb' });
});
test.after.always(async () => {
  for (const f of teardowns) await f();
});

let namespaces = 0;
async function client(t: ExecutionContext, transport: Provider): Promise<Client<BufferValue, Buffer>> {
  const made = await connect({
    servers: shared.addresses,
    namespace: ++namespaces,
    transport,
    strict: true,
    timeoutMs: 120_000,
    connectTimeoutMs: 120_000,
  });
  t.teardown(() => made.close());
  return made;
}

/** The value of a key: its name, again and again. */
function valueOf(key: string, length: number): Buffer {
  return Buffer.alloc(length, `${key}|`);
}

/** What getManyInto laid out, one text for each key. */
function seen(keys: readonly string[], target: Buffer, spans: Uint32Array): (string | undefined)[] {
  return keys.map((_, i) => {
    const [from = 0, length = 0] = spans.subarray(2 * i, 2 * i + 2);
    return from === ABSENT ? undefined : target.toString('latin1', from, from + length);
  });
}

test('shm: an expired value leaves no gap, and the bytes of no other key', async (t) => {
  const kv = await client(t, 'shm');
  const [a, b, c] = ['a', 'b', 'c'].map((key) => valueOf(key, 8));
  await kv.put('a', a!, { ttlMs: 300 });
  await kv.putMany([
    { key: 'b', value: b! },
    { key: 'c', value: c! },
  ]);
  while (kv.getSync('a') !== undefined) await new Promise(setImmediate);
  const target = Buffer.alloc(16, '.');
  const spans = new Uint32Array(6);
  // In the same turn as the GET that missed it, so that the owner has hardly had time to take the entry out.
  t.is(await kv.getManyInto(['a', 'b', 'c'], target, spans), 16);
  t.deepEqual(seen(['a', 'b', 'c'], target, spans), [undefined, String(b), String(c)]);
});

test('tcp: values that were handed out stay as they are beside a step of a scan that finds nothing', async (t) => {
  const kv = await client(t, 'tcp');
  const empty = kv.namespace(60_001);
  const keys = Array.from({ length: 50 }, (_, i) => `k${i}`);
  await kv.putMany(keys.map((key) => ({ key, value: valueOf(key, 100) })));
  const held: [string, Buffer | undefined][] = [];
  for (let round = 0; round < 10; round++) {
    const [page, ...values] = await Promise.all([empty.scanPage({ values: true }), ...keys.map((key) => kv.get(key))]);
    t.deepEqual(page, { entries: [], cursor: undefined });
    keys.forEach((key, i) => held.push([key, values[i]]));
    for (const [key, value] of held)
      if (value?.equals(valueOf(key, 100)) !== true)
        t.fail(`${key} changed in round ${round}: ${value?.toString('latin1', 0, 20)}`);
  }
  t.pass();
});

for (const transport of DEVICELESS) {
  test(`${transport}: thousands of keys, some expired, absent, empty or doubled, each have their own bytes, then and later`, async (t) => {
    const random = seeded(t, import.meta.filename);
    const kv = await client(t, transport);
    const names = Array.from({ length: 3000 }, (_, i) => `key ${i}`);
    const brief = new Set(names.filter(() => random.below(6) === 0));
    const lengths = new Map(names.map((name) => [name, random.pick([0, 1, 8, 9, 100, 300])]));
    const present = names.filter(() => random.below(8) > 0);
    const bytesOf = (name: string): Buffer => valueOf(name, lengths.get(name) ?? 0);
    await kv.putMany(present.filter((name) => !brief.has(name)).map((key) => ({ key, value: bytesOf(key) })));
    await kv.putMany(
      present.filter((name) => brief.has(name)).map((key) => ({ key, value: bytesOf(key), ttlMs: 200 })),
    );
    const there = new Set(present.filter((name) => !brief.has(name)));
    // The owner says when they have expired: a client may take its clock to be ahead, never behind.
    const listed = async (): Promise<Set<string>> => {
      const found = new Set<string>();
      for await (const { key } of kv.scan({ batch: 4096 })) found.add(String(key));
      return found;
    };
    while ((await listed()).size !== there.size) await new Promise(setImmediate);
    // A client that knows nothing yet: what it asks first comes later, then more and more is answered at once.
    const other = (await client(t, transport)).namespace(namespaces - 1);
    const held: [string, Buffer | undefined][] = [];
    for (let round = 0; round < 6; round++) {
      const keys = Array.from({ length: random.pick([5, 1024, 1025, 2600]) }, () => random.pick(names));
      const right = keys.map((key) => (there.has(key) ? String(bytesOf(key)) : undefined));
      const needed = right.reduce((sum, value) => sum + (value?.length ?? 0), 0);
      const target = Buffer.alloc(needed + 8, '.');
      const spans = new Uint32Array(2 * keys.length);
      const [values, used] = await Promise.all([
        other.getMany(keys),
        other.getManyInto(keys, target.subarray(0, needed), spans),
      ]);
      t.is(used, needed);
      t.deepEqual(seen(keys, target, spans), right);
      t.is(target.toString('latin1', needed), '........');
      keys.forEach((key, i) => held.push([key, values[i]]));
      t.deepEqual(
        held.filter(([key, value]) => value?.toString() !== (there.has(key) ? String(bytesOf(key)) : undefined)),
        [],
      );
    }
  });
}

/** As a program does that hands a value to another thread; later releases of Node.js refuse it. */
function transfer(value: Buffer): void {
  const { port1, port2 } = new MessageChannel();
  const memory = value.buffer as ArrayBuffer;
  for (const send of [() => structuredClone(value, { transfer: [memory] }), () => port1.postMessage(value, [memory])]) {
    try {
      send();
    } catch (error) {
      if (!(error instanceof DOMException && error.name === 'DataCloneError')) throw error;
    }
  }
  port1.close();
  port2.close();
}

for (const transport of DEVICELESS) {
  test(`${transport}: a value that a program transfers takes no other value with it, and the client goes on`, async (t) => {
    const kv = await client(t, transport);
    const keys = Array.from({ length: 20 }, (_, i) => `k${i}`);
    const lengthOf = (i: number): number => (i === 7 ? 100_000 : 500);
    await kv.putMany(keys.map((key, i) => ({ key, value: valueOf(key, lengthOf(i)) })));
    const got = await Promise.all(keys.map((key) => kv.get(key)));
    const many = await kv.getMany(keys);
    const listed: { key: string; value: Buffer }[] = [];
    for await (const { key, value } of kv.scan({ values: true })) listed.push({ key: String(key), value });
    for (const value of [got[3], many[3], listed.find(({ key }) => key === 'k3')?.value]) transfer(value!);
    const still = (what: string, key: string, value: Buffer | undefined): void => {
      t.true(value?.equals(valueOf(key, lengthOf(keys.indexOf(key)))), `${what} of ${key}`);
    };
    keys.forEach((key, i) => still('get', key, got[i]));
    keys.forEach((key, i) => still('getMany', key, many[i]));
    for (const { key, value } of listed) still('scan', key, value);
    await kv.put('after', valueOf('after', 10));
    t.deepEqual(await kv.get('after'), valueOf('after', 10));
  });
}
