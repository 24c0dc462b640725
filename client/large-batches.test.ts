/** Calls for many large values: how much is asked for at once, whoever answers, and what ends them. */
import test from 'ava';
import { setImmediate as turn } from 'node:timers/promises';
import type { Codec } from './codec.js';
import { ValueSizes } from './value-sizes.js';
import { setup, type Setup } from '../test/support/keyspace.js';

const MIB = 1 << 20;
const keysOf = (count: number): string[] => Array.from({ length: count }, (_, i) => `k${i}`);

/** Values of so many bytes, which lie in memory once. */
function fill({ native }: Setup, keys: readonly string[], bytes: number): void {
  const value = new Uint8Array(bytes);
  for (const key of keys) native.entries.set(`0/${key}`, { value, version: 1n, codec: 0, flags: 0 });
}

/** Answers all that is asked for until `call` has ended; how much was asked for at once, at most. */
async function mostAtOnce({ native, operations }: Setup, call: Promise<unknown>): Promise<number> {
  let most = 0;
  let ends = 0;
  const end = call.finally(() => ends++);
  while (ends === 0) {
    most = Math.max(most, native.outstanding.length);
    native.complete(1);
    operations.drain();
    await turn();
  }
  await end;
  return most;
}

for (const how of ['getMany', 'getMany with a signal', 'getManyInto'] as const) {
  test(`${how} asks for as many large values at once as have 16 MiB, by what answers that came later show`, async (t) => {
    const rig = setup({ direct: false, maxOutstanding: 3000 });
    rig.native.maxOutstanding = 3000;
    const keys = keysOf(70);
    fill(rig, keys, MIB);
    const target = Buffer.allocUnsafe(70 * MIB);
    const read = (): Promise<unknown> => {
      if (how === 'getManyInto') return Promise.resolve(rig.kv.getManyInto(keys, target, new Uint32Array(140)));
      return rig.kv.getMany(keys, how === 'getMany' ? {} : { signal: new AbortController().signal });
    };
    t.is(await mostAtOnce(rig, read()), 64, 'nothing is known of their size');
    t.is(await mostAtOnce(rig, read()), 16);
    fill(rig, keys, 10);
    const small: number[] = [];
    for (let i = 0; i < 40; i++) small.push(await mostAtOnce(rig, read()));
    t.is(small.at(-1), 70, 'and learns again that they are small');
  });
}

test('a client that was answered for absent keys asks for as many at once as there is room for', async (t) => {
  const rig = setup({ direct: false, maxOutstanding: 3000 });
  rig.native.maxOutstanding = 3000;
  await mostAtOnce(rig, rig.kv.getMany(keysOf(2)));
  t.is(await mostAtOnce(rig, rig.kv.getMany(keysOf(900))), 900);
});

test('sizes: a guess, then what was seen, and each look moves it by a quarter', (t) => {
  const sizes = new ValueSizes();
  t.deepEqual([sizes.together, sizes.memoryOf(100), sizes.keysOfMemory], [64, 33_024, 26_214]);
  sizes.answered(2 * MIB);
  sizes.answered(0);
  sizes.learn();
  t.deepEqual(
    [sizes.together, sizes.memoryOf(1), sizes.memoryOf(1000), sizes.keysOfMemory],
    [16, 1_311_744, 8 * MIB, 6],
  );
  sizes.answered(5 * MIB);
  sizes.learn();
  sizes.learn();
  t.is(sizes.together, 8);
  sizes.answered(64 * MIB);
  sizes.learn();
  t.is(sizes.together, 2, 'the largest value, too, is not asked for alone');
});

test('a codec that closes the client, or aborts the call, ends a getMany that was answered in several pieces', async (t) => {
  for (const code of ['ERR_CLOSED', 'ERR_ABORTED'] as const) {
    const rig = setup({ direct: true });
    const stop = new AbortController();
    const ending: Codec<string, string> = {
      id: 20,
      name: 'ending',
      encode: (value) => Buffer.from(value),
      decode: (bytes) => {
        if (code === 'ERR_CLOSED') rig.operations.close();
        else stop.abort();
        return bytes.toString();
      },
    };
    const keys = keysOf(3000);
    for (const key of keys) rig.native.store(key, Buffer.from('x'), 20);
    const read = rig.kv.withCodec(ending).getMany(keys, code === 'ERR_CLOSED' ? {} : { signal: stop.signal });
    const { message } = await t.throwsAsync(read, { code });
    t.regex(message, /^2936 of 3000 keys failed/, 'those of the first piece were answered');
  }
});
