// A cache in front of something slow: look here first, else compute and keep it for a minute.
import { connect } from 'farkv';

const kv = await connect({ servers: process.env.FARKV ?? '127.0.0.1:7400', codec: 'msgpack' });

async function cached(key, ttlMs, compute) {
  const found = await kv.get(key);
  if (found !== undefined) return found;
  const value = await compute();
  await kv.put(key, value, { ttlMs });
  return value;
}

let asked = 0;
const user = () => cached('example:user:7', 60_000, () => ({ name: 'Ada', asked: ++asked }));
console.log(await user(), await user());
await kv.delete('example:user:7');
await kv.close();
// prints: { name: 'Ada', asked: 1 } { name: 'Ada', asked: 1 }
