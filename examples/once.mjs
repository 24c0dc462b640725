// A job that one process of many shall do: whoever puts the key where it is absent does it.
// What must never be done twice needs a fence, too: docs/recipes.md has a whole lock.
import { connect } from 'farkv';

const kv = await connect(process.env.FARKV ?? '127.0.0.1:7400');

async function once(name, ttlMs, work) {
  const { swapped } = await kv.compareAndSwap(`example:once:${name}`, 0n, String(process.pid), { ttlMs });
  if (swapped) await work();
  return swapped;
}

const done = await Promise.all([1, 2, 3].map(() => once('nightly', 60_000, async () => console.log('working'))));
console.log(done.filter(Boolean).length);
await kv.delete('example:once:nightly');
await kv.close();
// prints: working
// prints: 1
