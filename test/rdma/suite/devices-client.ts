/**
 * A client that PUTs and GETs, small values and large ones, until its parent says that it shall end: each GET must give
 * what was PUT last. Says `going` after every round of all keys; at the end how often it was connected, and over what.
 */
import assert from 'node:assert/strict';
import { connect } from '../../../client/index.js';

const KEYS = 24;
/** Of every eighth value: taken in by a READ of this process's memory. */
const LARGE = 1 << 20;

let connects = 0;
const client = await connect({
  servers: process.argv.slice(2),
  transport: 'verbs',
  strict: true,
  timeoutMs: 120_000,
  connectTimeoutMs: 120_000,
  unavailableAfterMs: Infinity,
  onEvent: (event) => {
    if (event.type === 'transport' && event.transport.connected) connects++;
  },
});
const say = async (what: unknown): Promise<void> => {
  await new Promise((sent) => process.send?.(what, sent));
};
const parent = { wantsEnd: false };
process.once('message', () => (parent.wantsEnd = true));
const valueOf = (key: number, round: number): Buffer =>
  Buffer.alloc(key % 8 === 0 ? LARGE : 500, `${process.pid} ${key} ${round} `);

for (let round = 0; !parent.wantsEnd; round++) {
  for (let key = 0; key < KEYS; key++) {
    const name = `${process.pid} ${key}`;
    if (round > 0) assert.ok(valueOf(key, round - 1).equals((await client.get(name)) ?? Buffer.alloc(0)), name);
    await client.put(name, valueOf(key, round));
    assert.ok(valueOf(key, round).equals((await client.get(name)) ?? Buffer.alloc(0)), name);
  }
  await say('going');
}
await say({ connects, providers: client.transports().map((t) => t.provider) });
await client.close();
process.exit(0);
