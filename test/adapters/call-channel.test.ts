/** What subscribers of the diagnostics channel `farkv:call` are told, of calls to a real server. */
import test, { type ExecutionContext } from 'ava';
import { tracingChannel } from 'node:diagnostics_channel';
import { knowCallers } from '../../client/call-channel.js';
import { Keyspace, type BufferValue, type CallMessage } from '../../client/index.js';
import { CALLS } from '../chaos/calls.js';
import { oneServer } from '../support/adapters.js';

const server = oneServer(test);
type Told = [event: string, call: string, outcome?: unknown];

/** What is told until the test ends, or `stop` is called. */
function listen(t: ExecutionContext): { told: Told[]; messages: CallMessage[]; stop: () => void } {
  const channel = tracingChannel<unknown, CallMessage>('farkv:call');
  const told: Told[] = [];
  const messages: CallMessage[] = [];
  const note = (event: string) => (message: CallMessage) => {
    const outcome = message.error ?? message.result;
    told.push(outcome === undefined ? [event, message.call] : [event, message.call, outcome]);
  };
  const subscribers = {
    start(message: CallMessage): void {
      messages.push(message);
      note('start')(message);
    },
    end: note('end'),
    asyncStart: note('asyncStart'),
    asyncEnd: note('asyncEnd'),
    error: note('error'),
  };
  channel.subscribe(subscribers);
  let heard = true;
  const stop = (): void => {
    if (heard) channel.unsubscribe(subscribers);
    heard = false;
  };
  t.teardown(stop);
  return { told, messages, stop };
}

/** Every method that is about keys. */
async function callAll(t: ExecutionContext, kv: Keyspace<BufferValue, Buffer>): Promise<void> {
  await kv.put('a', '1');
  for (const { plain } of CALLS) await plain?.(kv, 'a');
  for await (const entry of kv.scan()) t.truthy(entry.key);
  await kv.count();
}

test.serial('every call about keys is told, by its name', async (t) => {
  const kv = server().space();
  const { messages } = listen(t);
  await callAll(t, kv);
  const known = Object.getOwnPropertyNames(Keyspace.prototype).filter(
    (name) => !['constructor', 'key', 'shardOf', 'namespace', 'withCodec', 'scan'].includes(name),
  );
  t.deepEqual([...new Set(messages.map(({ call }) => call))].sort(), known.sort());
  t.deepEqual(messages[0], { call: 'put', namespace: messages[0]!.namespace, key: 'a', result: undefined });
  t.is(messages.find(({ call }) => call === 'getMany')?.keys, 2);
});

test.serial('the end of a call is told with what it resolved with, or why it failed', async (t) => {
  const kv = server().space();
  const { told, stop } = listen(t);
  await kv.put('text', 'no number');
  t.is(kv.getSync('none'), undefined);
  const error = await t.throwsAsync(kv.increment('text'));
  t.is(await kv.delete('text'), true);
  t.deepEqual(told, [
    ['start', 'put'],
    ['end', 'put'],
    ['asyncStart', 'put'],
    ['asyncEnd', 'put'],
    ['start', 'getSync'],
    ['end', 'getSync'],
    ['start', 'increment'],
    ['end', 'increment'],
    ['error', 'increment', error],
    ['asyncStart', 'increment', error],
    ['asyncEnd', 'increment', error],
    ['start', 'delete'],
    ['end', 'delete'],
    ['asyncStart', 'delete', true],
    ['asyncEnd', 'delete', true],
  ]);
  stop();
  await kv.put('a', '1');
  t.is(told.length, 15);
});

test.serial('while nobody subscribes no message is made', async (t) => {
  const kv = server().space();
  // Whose call it is is kept with each message that is made.
  knowCallers();
  type Set = (this: WeakMap<object, unknown>, key: object, value: unknown) => WeakMap<object, unknown>;
  const set = Reflect.get(WeakMap.prototype, 'set') as Set;
  const made: string[] = [];
  const noted: Set = function (key, value) {
    if ('call' in key && 'namespace' in key) made.push(String(key.call));
    return set.call(this, key, value);
  };
  Reflect.set(WeakMap.prototype, 'set', noted);
  t.teardown(() => Reflect.set(WeakMap.prototype, 'set', set));
  await callAll(t, kv);
  t.deepEqual(made, []);
  const { messages } = listen(t);
  await callAll(t, kv);
  t.deepEqual(
    made,
    messages.map(({ call }) => call),
  );
});
