/**
 * Every public call, with arguments that it cannot take: each throws, or rejects with, a FarkvError of a known code, and
 * the client goes on. Methods are found by reflection, so a new one is among them by itself.
 */
import * as api from '@opentelemetry/api';
import test, { type ExecutionContext } from 'ava';
import session from 'express-session';
import { EventEmitter } from 'node:events';
import { KeyvFarkv } from '../../adapters/keyv.js';
import { traceCalls } from '../../adapters/opentelemetry.js';
import { sessionStore } from '../../adapters/session.js';
import { farkvDriver } from '../../adapters/unstorage.js';
import { connect, Keyspace } from '../../client/index.js';
import { CONNECT_OPTIONS } from '../../client/options.js';
import { oneServer } from '../support/adapters.js';
import { Hostile, HOSTILE, methodsOf, SIMPLE, wrongEnd } from '../support/hostile-arguments.js';

const server = oneServer(test);
type Call = (...args: unknown[]) => unknown;

/** What stands before the hostile argument: what some method takes there. */
const before = (prepared: unknown): readonly (readonly unknown[])[] => [
  [],
  ['key'],
  [prepared],
  ['key', 1n],
  ['key', 'value'],
  ['key', 1n, 'value'],
  ['key', () => 'value'],
  ['key', Buffer.alloc(8)],
  ['key', Buffer.alloc(8), 0],
  [['key']],
  [[{ key: 'key', value: 'value' }]],
  [['key'], Buffer.alloc(8)],
  [['key'], Buffer.alloc(8), new Uint32Array(2)],
];

/** Uses what a call gave as far as its arguments matter: the first page of a scan, a view's codec. */
async function used(result: unknown): Promise<void> {
  const answer: unknown = await result;
  if (answer instanceof Keyspace) {
    await answer.get('key').catch(isHow);
    await answer.put('key', 'value');
  } else if (typeof answer === 'object' && answer !== null && Symbol.asyncIterator in answer) {
    const pages = answer as AsyncGenerator<unknown, void>;
    await pages.next();
    await pages.return();
  }
}
/** An entry of another codec is not the question. */
const isHow = (error: unknown): void => {
  if ((error as { code?: unknown }).code !== 'ERR_CODEC') throw error;
};

async function works(t: ExecutionContext, kv: Keyspace<Uint8Array | string, Buffer>, after: string): Promise<void> {
  await kv.put('works', after);
  t.is(String(await kv.get('works')), after);
}

for (const view of ['buffer', 'msgpack', 'namespace'] as const)
  test(`every method of a client, and what it does with what it cannot take: ${view}`, async (t) => {
    const client = await connect({ servers: server().address, timeoutMs: 60_000 });
    t.teardown(() => client.close());
    const kv: object =
      view === 'buffer' ? client : view === 'msgpack' ? client.withCodec('msgpack') : client.namespace(9);
    const methods = methodsOf(kv).filter((name) => name !== 'close');
    t.true(methods.length > 25, methods.join(' '));
    const wrong: string[] = [];
    for (const name of methods) {
      const method = (kv as Readonly<Record<string, Call>>)[name]!;
      for (const [what, make] of HOSTILE)
        for (const args of [...before(client.key('key')), undefined]) {
          const all = args === undefined ? [make(), make(), make(), make()] : [...args, make()];
          const end = await wrongEnd(() => used(method.apply(kv, all)));
          // What the function of an update throws is passed on.
          if (end === undefined || (name === 'update' && /Hostile|'apply' on a proxy/.test(end))) continue;
          wrong.push(`${name}, ${args?.length ?? 'all'} before: ${what}: ${end}`);
        }
      await works(t, client, name);
    }
    t.deepEqual(wrong.slice(0, 20), [], `${wrong.length}`);
    for (const [what, make] of HOSTILE) t.is(await wrongEnd(() => (client.close as Call)(make())), undefined, what);
    for (const name of methods)
      t.is(await wrongEnd(() => used((kv as Readonly<Record<string, Call>>)[name]!('key', 'value'))), undefined, name);
  });

test('connect, with options that it cannot take', async (t) => {
  const { address } = server();
  const wrong: string[] = [];
  const tried = async (what: string, ...args: unknown[]): Promise<void> => {
    const end = await wrongEnd(async () => await ((await (connect as Call)(...args)) as { close(): unknown }).close());
    if (end !== undefined) wrong.push(`${what}: ${end}`);
  };
  for (const [what, make] of HOSTILE) {
    const made = make();
    // Texts would be looked up as names of hosts.
    if (!what.includes('text')) await tried(what, made);
    await tried(`a second argument: ${what}`, address, make());
  }
  for (const name of CONNECT_OPTIONS.filter((one) => one !== 'onEvent'))
    for (const [what, make] of SIMPLE)
      await tried(`${name}: ${what}`, { servers: address, connectTimeoutMs: 100, [name]: make() });
  for (const name of ['ca', 'cert', 'key', 'caFile', 'certFile', 'keyFile', 'servername'])
    for (const [what, make] of SIMPLE)
      await tried(`tls.${name}: ${what}`, { servers: '127.0.0.1:1', connectTimeoutMs: 20, tls: { [name]: make() } });
  t.deepEqual(wrong.slice(0, 20), [], `${wrong.length}`);
});

/** A call whose callback is its last parameter. */
async function told(object: object, method: Call, args: readonly unknown[]): Promise<void> {
  const own = Array.from({ length: method.length - 1 }, (_, i) => args[i]);
  await new Promise<void>((resolve, reject) => {
    method.call(object, ...own, (error: unknown) => (error == null ? resolve() : reject(error as Error)));
  });
}

test('constructors of adapters, and the calls of what they make', async (t) => {
  const kv = server().space();
  const wrong: string[] = [];
  const tried = async (what: string, call: () => unknown): Promise<void> => {
    const end = await wrongEnd(call);
    if (end !== undefined) wrong.push(`${what}: ${end}`);
  };
  const Keyv = KeyvFarkv as unknown as new (...args: unknown[]) => KeyvFarkv;
  for (const [what, make] of HOSTILE) {
    const source = make();
    if (!what.includes('text')) {
      await tried(`keyv, source: ${what}`, () => new Keyv(source).get('key'));
      await tried(`unstorage, source: ${what}`, () => (farkvDriver as Call)({ source }));
      await tried(`session, source: ${what}`, () => (sessionStore as Call)(session, source));
    }
    await tried(`keyv, options: ${what}`, () => new Keyv(kv, make()));
    await tried(`unstorage, options: ${what}`, () => (farkvDriver as Call)(make()));
    await tried(`session, host: ${what}`, () => (sessionStore as Call)(make(), kv));
    await tried(`session, options: ${what}`, () => (sessionStore as Call)(session, kv, make()));
    await tried(`spans: ${what}`, () => ((traceCalls as Call)(make()) as () => void)());
    for (const option of ['prefix', 'ttl', 'ttlMs']) {
      await tried(`keyv, ${option}: ${what}`, () => new Keyv(kv, { [option]: make() }));
      await tried(`unstorage, ${option}: ${what}`, () => (farkvDriver as Call)({ source: kv, [option]: make() }));
      await tried(`session, ${option}: ${what}`, () => (sessionStore as Call)(session, kv, { [option]: make() }));
    }
    await tried(`keyv, namespace: ${what}`, () => (new Keyv(kv).namespace = make() as string));
  }
  const stores: readonly (readonly [string, object, object, boolean])[] = [
    ['keyv', new KeyvFarkv(kv), EventEmitter.prototype, false],
    ['unstorage', farkvDriver({ source: kv }), Object.prototype, false],
    ['session', sessionStore(session, kv), session.Store.prototype, true],
  ];
  for (const [store, object, end, calledBack] of stores)
    for (const name of methodsOf(object, end)) {
      if (name.startsWith('_') || ['disconnect', 'dispose', 'close'].includes(name)) continue;
      const method = (object as Readonly<Record<string, Call>>)[name]!;
      for (const [what, make] of SIMPLE) {
        for (const args of [[], ['key'], ['key', 'value']] as unknown[][])
          await tried(`${store}.${name}, ${args.length} before: ${what}`, () =>
            calledBack ? told(object, method, [...args, make()]) : used(method.call(object, ...args, make())),
          );
        // What a callback throws is the program's own.
        if (calledBack && typeof make() !== 'function')
          await tried(`${store}.${name}, callback: ${what}`, () => {
            const args = new Array<unknown>(method.length - 1).fill('key');
            method.call(object, ...args, make());
          });
      }
      await works(t, kv, `${store}.${name}`);
    }
  traceCalls(api)();
  t.deepEqual(wrong.slice(0, 20), [], `${wrong.length}`);
});

test.serial('what onEvent throws is an uncaught exception of the program, and the client goes on', async (t) => {
  const thrown: unknown[] = [];
  const caught = (error: unknown) => thrown.push(error);
  process.on('uncaughtException', caught);
  process.setUncaughtExceptionCaptureCallback(null);
  const listeners = process.listeners('uncaughtException').filter((one) => one !== caught);
  for (const one of listeners) process.off('uncaughtException', one);
  t.teardown(() => {
    process.off('uncaughtException', caught);
    for (const one of listeners) process.on('uncaughtException', one);
  });
  const onEvent = (): void => {
    throw new Hostile('from onEvent');
  };
  const client = await connect({ servers: server().address, onEvent });
  await works(t, client as never, 'onEvent');
  await client.close();
  t.true(thrown.length > 0 && thrown.every((error) => error instanceof Hostile));
});
