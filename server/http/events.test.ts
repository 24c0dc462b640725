import test from 'ava';
import { EventEmitter, once } from 'node:events';
import { EMPTY } from '../../core/metadata/reduce.js';
import type { Member, Shard } from '../../core/metadata/state.js';
import type { ClusterStatus } from '../status.js';
import { LISTENER_UNREAD, LISTENERS } from './bounds.js';
import { Events } from './events.js';

const HOUR = 3_600_000;
const STATUS = {
  ...{ members: [], shards: [], moves: [], moveErrors: [], failovers: [], term: 1, leader: 's1' },
} as unknown as ClusterStatus;
const hasJoined = (): boolean => true;

class Stream extends EventEmitter {
  text = '';
  writableLength = 0;
  isDestroyed = false;

  write(text: string): boolean {
    this.text += text;
    this.emit('written');
    return true;
  }

  destroy(): this {
    this.isDestroyed = true;
    this.emit('close');
    return this;
  }
}

type Added = Parameters<Events['add']>;
const add = (
  events: Events,
  stream: Stream,
  lapsed: () => string | undefined = () => undefined,
  connection: EventEmitter = new EventEmitter(),
): void => events.add(stream as unknown as Added[0], { lapsed }, connection as unknown as Added[2]);

test('a page that is open gets the figures, and the cluster is looked at while there is one', async (t) => {
  let looks = 0;
  const look = (): Promise<ClusterStatus> => {
    looks += 1;
    return Promise.resolve(STATUS);
  };
  const events = new Events({ look, hasJoined, lookMs: 1 });
  t.teardown(() => events.close());
  const stream = new Stream();
  t.is(looks, 0);
  add(events, stream);
  while (stream.text.split('event: view').length < 4) await once(stream, 'written');
  t.is(events.listeners, 1);
  stream.destroy();
  t.is(events.listeners, 0);
});

test('what has happened is sent once, also to a page that comes later', (t) => {
  const events = new Events({ hasJoined, look: () => new Promise(() => undefined), nowMs: () => 7 });
  t.teardown(() => events.close());
  const first = new Stream();
  add(events, first);
  const of = (owner: string) => ({ ...EMPTY, clusterId: 'c', shards: [{ shard: 0, owner } as Shard] });
  events.stateChanged(of('s1'));
  t.is(first.text, '');
  events.stateChanged(of('s2'));
  const later = new Stream();
  add(events, later);
  const said = 'event: happened\ndata: [{"number":1,"atMs":7,"text":"from s1 to s2: shard 0"}]\n\n';
  t.is(first.text, said);
  t.is(later.text, said);
});

test('what a start finds in its log is no news', (t) => {
  const events = new Events({
    look: () => new Promise(() => undefined),
    hasJoined: ({ members }) => members.has('s1'),
    nowMs: () => 7,
  });
  t.teardown(() => events.close());
  const stream = new Stream();
  add(events, stream);
  const of = (owner: string, ...members: readonly string[]) => ({
    ...EMPTY,
    clusterId: 'c',
    shards: [{ shard: 0, owner } as Shard],
    members: new Map(members.map((id) => [id, { id } as Member])),
  });
  for (const state of [of('s2'), of('s3'), of('s3', 's1')]) events.stateChanged(state);
  t.is(stream.text, '');
  events.stateChanged(of('s1', 's1'));
  t.regex(stream.text, /"from s3 to s1: shard 0"/);
});

test('there are at most so many pages', (t) => {
  const events = new Events({ hasJoined, look: () => new Promise(() => undefined) });
  t.teardown(() => events.close());
  const streams = Array.from({ length: LISTENERS + 1 }, () => new Stream());
  for (const stream of streams) add(events, stream);
  t.is(events.listeners, LISTENERS);
  t.deepEqual(
    streams.map(({ isDestroyed }) => isDestroyed),
    streams.map((_, i) => i === LISTENERS),
  );
});

test('a page is gone with its connection, also where its answer never began', (t) => {
  const events = new Events({ hasJoined, look: () => new Promise(() => undefined) });
  t.teardown(() => events.close());
  const connection = new EventEmitter();
  add(events, new Stream(), undefined, connection);
  t.is(events.listeners, 1);
  connection.emit('close');
  t.is(events.listeners, 0);
});

test('a page that does not read, or whose token was taken away, is cut off', async (t) => {
  const events = new Events({ hasJoined, look: () => Promise.resolve(STATUS), lookMs: HOUR });
  t.teardown(() => events.close());
  const [slow, over, fine] = [new Stream(), new Stream(), new Stream()];
  slow.writableLength = LISTENER_UNREAD + 1;
  add(events, slow);
  add(events, over, () => 'its token was taken out of token');
  add(events, fine);
  await once(fine, 'written');
  t.deepEqual([slow.isDestroyed, over.isDestroyed, fine.isDestroyed], [true, true, false]);
  t.is(events.listeners, 1);
});
