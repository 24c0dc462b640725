/**
 * A client that GETs until a call fails, and tells its parent with which code; a call that has not ended in time has
 * hung.
 */
import { connect, FarkvError } from '../../../client/index.js';

const client = await connect({
  servers: process.argv.slice(2),
  transport: 'verbs',
  strict: true,
  timeoutMs: 60_000,
  connectTimeoutMs: 60_000,
  unavailableAfterMs: 10_000,
});
const say = async (text: string): Promise<void> => {
  await new Promise((sent) => process.send?.(text, sent));
};
await client.put('key', Buffer.alloc(1000, 1));
for (let i = 0; ; i++) {
  try {
    await client.get('key');
  } catch (error) {
    await say(error instanceof FarkvError ? error.code : String(error));
    await client.close();
    process.exit(0);
  }
  if (i === 50) await say('reading');
}
