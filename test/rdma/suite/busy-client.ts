/** A client process with many READs and SENDs in flight at any time; says so to its parent, which kills it. */
import { connect } from '../../../client/index.js';

const client = await connect({
  servers: process.argv.slice(2),
  transport: 'verbs',
  strict: true,
  timeoutMs: 60_000,
  connectTimeoutMs: 60_000,
});
const value = Buffer.alloc(20_000, 1);
await client.put('large', value);
let done = 0;
async function lane(n: number): Promise<never> {
  for (;;) {
    if (n % 2 === 0) await client.get('large');
    else await client.put(`own-${n}`, value);
    if (++done === 200) process.send?.('busy');
  }
}
await Promise.all(Array.from({ length: 32 }, (_, n) => lane(n)));
