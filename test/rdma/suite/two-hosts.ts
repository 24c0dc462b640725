/**
 * The client's host of run.sh --two-hosts: the server is another machine. Argument: the server's control address. It
 * writes, reads what it wrote by READs of the other machine's memory, and tells both what it saw and what it costs.
 */
import assert from 'node:assert/strict';
import { connect } from '../../../client/index.js';
import { Load } from './load.js';

const PAIRS = 1000;
const GETS = 2000;
const BYTES = 1000;

const [, , server = ''] = process.argv;
// The other machine may still be starting.
const client = await connect({
  servers: [server],
  transport: 'verbs',
  strict: true,
  timeoutMs: 60_000,
  connectTimeoutMs: 120_000,
  unavailableAfterMs: Infinity,
});
const load = new Load(client, 8, 'counter');
await load.until(PAIRS);
await load.stop();

const value = Buffer.alloc(BYTES, 7);
await client.put('key', value);
const into = Buffer.alloc(BYTES);
client.getIntoSync('key', into);
const [before, begun] = [client.stats(), Date.now()];
for (let i = 0; i < GETS; i++) {
  into.fill(0);
  assert.equal(client.getIntoSync('key', into), BYTES);
  assert.ok(into.equals(value));
}
const [after, ms] = [client.stats(), Date.now() - begun];
assert.ok(after.reads - before.reads >= GETS, 'each GET is at least one READ');
assert.equal(after.twoSidedGets, before.twoSidedGets);
console.log(
  `   ${load.done} pairs of PUT and GET; ${GETS} GETs of ${BYTES} B in ${ms} ms, ${after.reads - before.reads} READs`,
);
await client.close();
