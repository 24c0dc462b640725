/** The thread of clients and operators, seen from the thread of Raft: its start, its death, its end. */
import test, { type ExecutionContext } from 'ava';
import { EventEmitter, once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import type { FarkvError } from '../../core/errors.js';
import type { MetadataState, Shard } from '../../core/metadata/state.js';
import { ControlClient } from '../../net/control-client.js';
import { STATE } from '../../test/support/control-rig.js';
import { stallThreads } from '../../test/support/stalled-threads.js';
import { Log, type LogFields } from '../log.js';
import type { FrontStart } from './front-messages.js';
import { FrontThread, loadFront, type FrontOptions } from './front-thread.js';

/** Whether it is done before nobody would wait any longer. */
async function ends(closed: Promise<void>): Promise<boolean> {
  let patience: NodeJS.Timeout | undefined;
  const late = new Promise<boolean>((resolve) => (patience = setTimeout(() => resolve(false), 20_000)));
  return await Promise.race([closed.then(() => true), late]).finally(() => clearTimeout(patience));
}

async function open(
  t: ExecutionContext,
  { listen = [{ host: '127.0.0.1', port: 0 }], httpListen = [], ...options }: Partial<FrontOptions & FrontStart> = {},
): Promise<FrontThread> {
  return await FrontThread.open({
    worker: loadFront({
      serverId: 's1',
      listen,
      tls: undefined,
      access: { tenants: [] },
      httpListen,
      maxConnections: 10,
      handshakeMs: 60_000,
      logLevel: 'error',
    }),
    incarnation: 'a',
    call: () => Promise.resolve({}),
    log: new Log('error', () => undefined),
    failed: (error) => t.fail(error.message),
    ...options,
  });
}

/** A state whose change is none: the thread dies of it. */
const DEADLY: MetadataState = { ...STATE, shards: Object.assign<Shard[], object>([], { flatMap: () => [null] }) };

test('an address that is taken is said, and the thread ends', async (t) => {
  const taken = createServer().listen(0, '127.0.0.1');
  await once(taken, 'listening');
  const { port } = taken.address() as AddressInfo;
  await t.throwsAsync(open(t, { listen: [{ host: '127.0.0.1', port }] }), { code: 'ERR_ADDRESS_IN_USE' });
  taken.close();
});

test('calls that come while a server starts are refused as busy, and the start goes on', async (t) => {
  const free = createServer().listen(0, '127.0.0.1');
  await once(free, 'listening');
  const { port } = free.address() as AddressInfo;
  await new Promise((resolve) => free.close(resolve));
  const lines: string[] = [];
  const starting = open(t, {
    listen: [{ host: '127.0.0.1', port }],
    httpListen: [{ host: '127.0.0.1', port: 0 }],
    log: new Log('error', (_, text) => lines.push(text)),
  });
  const answers = new Set<string>();
  const settings = {
    address: `127.0.0.1:${port}`,
    trust: undefined,
    timeoutMs: 5000,
    hello: { role: 'admin' },
  } as const;
  const asked = (async (): Promise<void> => {
    while (!answers.has('answered')) {
      try {
        const client = await ControlClient.open(settings);
        t.teardown(() => client.connection.close());
        while (!answers.has('answered'))
          await client.call('status', {}, 5000).then(
            () => answers.add('answered'),
            (error: unknown) => answers.add((error as FarkvError).code),
          );
      } catch {
        // Nobody listens yet.
        await turn();
      }
    }
  })();
  const front = await starting;
  await asked;
  // Nearly always there: a call comes before all ports are bound.
  answers.delete('ERR_BUSY');
  t.deepEqual([...answers], ['answered']);
  t.deepEqual(lines, []);
  t.true(await ends(front.close()));
});

test('a thread that dies is told once, and what is left of it can be closed', async (t) => {
  const deaths: FarkvError[] = [];
  const death = new EventEmitter();
  const died = once(death, 'died');
  const front = await open(t, { failed: (error) => death.emit('died', deaths.push(error)) });
  front.stateChanged(DEADLY);
  await died;
  t.true(await ends(front.close()));
  t.deepEqual(
    deaths.map(({ code }) => code),
    ['ERR_INTERNAL'],
  );
});

test('a thread that has stopped answering is told, and that it answers again', async (t) => {
  const lines = new EventEmitter();
  const log = new Log('info', (level, text, fields) => {
    if (fields?.event.startsWith('front-') === true) lines.emit(level, text, fields);
  });
  const front = await open(t, { lookMs: 500, log });
  const told = once(lines, 'warn');
  const resume = await stallThreads();
  t.teardown(() => front.close());
  const [stalled, of] = (await told) as [string, LogFields];
  t.regex(stalled, /has not answered for 2000 ms/);
  t.like(of, { event: 'front-stalled', stalledMs: 2000 });
  t.true((front.stalledMs ?? 0) >= 2000);
  const over = once(lines, 'info');
  await resume();
  t.regex(String((await over)[0]), /answers again/);
  t.is(front.stalledMs, undefined);
});
