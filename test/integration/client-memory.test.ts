/** What a client costs the process that has many of them. */
import { readFileSync } from 'node:fs';
import test from 'ava';
import { connect } from '../../client/index.js';
import { startServer } from '../../server/index.js';

const CLIENTS = 50;
/** Tables for 1,024 operations in flight have megabytes; what was never used is not touched. The rest is for V8. */
const BYTES_EACH = 2 << 20;

const anonymousBytes = (): number =>
  1024 * Number(/^RssAnon:\s+(\d+) kB$/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1]);

test('clients that do little take little memory', async (t) => {
  const server = await startServer({ listen: '127.0.0.1:0', memory: '64mb', logLevel: 'error' }, { env: {} });
  t.teardown(() => server.close());
  const used = async () => {
    const kv = await connect({ servers: server.addresses, transport: 'tcp' });
    t.teardown(() => kv.close());
    await kv.put('key', 'value');
    t.is(String(await kv.get('key')), 'value');
  };
  await used();
  const before = anonymousBytes();
  for (let i = 0; i < CLIENTS; i++) await used();
  const each = (anonymousBytes() - before) / CLIENTS;
  t.true(each < BYTES_EACH, `${Math.round(each / 1024)} KiB per client`);
});
