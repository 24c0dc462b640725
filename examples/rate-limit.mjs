// At most so many requests of one caller in a window of time, counted by all processes together.
import { connect } from 'farkv';

const kv = await connect(process.env.FARKV ?? '127.0.0.1:7400');

async function allowed(caller, most, windowMs) {
  const window = Math.floor(Date.now() / windowMs);
  // The owner adds, so no two callers get the same number; the entry goes by itself when its window is over.
  return (await kv.increment(`example:limit:${caller}:${window}`, 1, { ttlMs: 2 * windowMs })) <= most;
}

const answers = await Promise.all(Array.from({ length: 5 }, () => allowed(`caller-${process.pid}`, 3, 3_600_000)));
console.log(answers.filter(Boolean).length, 'of', answers.length);
await kv.close();
// prints: 3 of 5
