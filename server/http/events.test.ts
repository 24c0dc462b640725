import test from 'ava';
import { EventEmitter, once } from 'node:events';
import { EMPTY } from '../../core/metadata/reduce.js';
import type { Member, Shard } from '../../core/metadata/state.js';
import type { ClusterStatus } from '../status.js';
import { LISTENERS, UNREAD_MS } from './bounds.js';
import { Events } from './events.js';
import { afterPuts } from '../../test/support/status-after-puts.js';

const STATUS = {
  ...{ members: [], shards: [], moves: [], moveErrors: [], failovers: [], replication: [], term: 1, leader: 's1' },
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

const START = 'event: start\ndata: {"atMs":7}\n\n';

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

test('while no page is open there is a look now and then, and the next page begins with what they have found', async (t) => {
  const looked = new EventEmitter();
  let looks = 0;
  const look = (): Promise<ClusterStatus> => {
    looks += 1;
    looked.emit('look');
    return Promise.resolve(STATUS);
  };
  const events = new Events({ look, hasJoined, nowMs: () => looks * 1000, lookMs: 60_000, sampleMs: 1 });
  t.teardown(() => events.close());
  while (looks < 4) await once(looked, 'look');
  const stream = new Stream();
  add(events, stream);
  const [, samples = ''] = /^event: start\ndata: .*\n\nevent: history\ndata: (.*)\n\n/.exec(stream.text) ?? [];
  const times = (JSON.parse(samples) as number[][]).map(([atMs]) => atMs);
  t.deepEqual(times.slice(0, 2), [2000, 3000], 'the first look has nothing to be compared with');
  while (!stream.text.includes('event: view')) await once(stream, 'written');
  events.close();
  t.is(looks, times.length + 2, 'a page that comes is a reason to look at once');
});

test('a page that comes just after a look has the rates of the time before, and not of a moment', async (t) => {
  const looked = new EventEmitter();
  let atMs = 0;
  let answer: (status: ClusterStatus) => void = () => undefined;
  const look = (): Promise<ClusterStatus> => {
    looked.emit('look');
    return new Promise((resolve) => (answer = resolve));
  };
  const events = new Events({ look, hasJoined, nowMs: () => atMs, lookMs: 1000, sampleMs: 1 });
  t.teardown(() => events.close());
  await once(looked, 'look');
  const stream = new Stream();
  for (const [ms, puts] of [
    [0, 0],
    [10_000, 10_000],
    [10_100, 10_200],
  ] as const) {
    atMs = ms;
    if (ms > 10_000) add(events, stream);
    answer(afterPuts(puts));
    if (ms <= 10_000) await once(looked, 'look');
  }
  while (!stream.text.includes('event: view')) await once(stream, 'written');
  const [, view = ''] = /event: view\ndata: (.*)\n/.exec(stream.text) ?? [];
  const { rates } = JSON.parse(view) as { rates: { put: number } };
  t.is(Math.round(rates.put), Math.round(10_200 / 10.1));
});

test('a server that stops looks no more', async (t) => {
  const looked = new EventEmitter();
  let answer: (status: ClusterStatus) => void = () => undefined;
  let looks = 0;
  const options = { hasJoined, lookMs: 1, sampleMs: 1 };
  const look = (): Promise<ClusterStatus> => {
    looks += 1;
    looked.emit('look');
    return new Promise((resolve) => (answer = resolve));
  };
  const events = new Events({ ...options, look });
  await once(looked, 'look');
  events.close();
  answer(STATUS);
  // As one does that has not stopped.
  let others = 0;
  const other = new Events({ ...options, look: () => (looked.emit('look', ++others), Promise.resolve(STATUS)) });
  t.teardown(() => other.close());
  while (others < 5) await once(looked, 'look');
  t.is(looks, 1);
});

test('what has happened is sent once, also to a page that comes later', (t) => {
  const events = new Events({ hasJoined, look: () => new Promise(() => undefined), nowMs: () => 7 });
  t.teardown(() => events.close());
  const first = new Stream();
  add(events, first);
  const of = (...ids: readonly string[]) => ({
    ...{ ...EMPTY, clusterId: 'c' },
    members: new Map(ids.map((id) => [id, { id } as Member])),
  });
  events.stateChanged(of('s1'));
  t.is(first.text, START);
  events.stateChanged(of('s1', 's2'));
  const later = new Stream();
  add(events, later);
  const said = `${START}event: happened\ndata: [{"number":1,"atMs":7,"text":"s2 has joined"}]\n\n`;
  t.is(first.text, said);
  t.is(later.text, said);
});

test('what others say that happened is sent with its time, and to a page that comes later', (t) => {
  const events = new Events({ hasJoined, look: () => new Promise(() => undefined), nowMs: () => 7 });
  t.teardown(() => events.close());
  const stream = new Stream();
  add(events, stream);
  events.happened('from s1 to s2: shard 0', 6);
  const later = new Stream();
  add(events, later);
  const said = `${START}event: happened\ndata: [{"number":1,"atMs":6,"text":"from s1 to s2: shard 0"}]\n\n`;
  t.is(stream.text, said);
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
  for (const state of [of('s2'), of('s3', 's2'), of('s3', 's1')]) events.stateChanged(state);
  t.is(stream.text, START);
  events.stateChanged(of('s1', 's1', 's3'));
  t.regex(stream.text, /"s3 has joined"/);
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
  let now = 0;
  const events = new Events({ hasJoined, look: () => Promise.resolve(STATUS), lookMs: 1, nowMs: () => now });
  t.teardown(() => events.close());
  const [slow, over, fine] = [new Stream(), new Stream(), new Stream()];
  slow.writableLength = 1;
  add(events, slow);
  const ended: string[] = [];
  const lapsed = (): string => 'its token was taken out of token';
  events.add(over as unknown as Added[0], { lapsed, ended: (why) => ended.push(why) }, over as unknown as Added[2]);
  add(events, fine);
  await once(fine, 'written');
  t.deepEqual([slow.isDestroyed, over.isDestroyed, fine.isDestroyed], [false, true, false]);
  now = UNREAD_MS;
  await once(fine, 'written');
  t.false(slow.isDestroyed);
  now += 1;
  await once(fine, 'written');
  t.deepEqual([slow.isDestroyed, fine.isDestroyed], [true, false]);
  t.is(slow.text, START.replace('7', '0'), 'and nothing was sent to it meanwhile');
  t.deepEqual(ended, ['its token was taken out of token'], 'for the log');
  t.is(events.listeners, 1);
});

const SHARDS = 4096;
/** With three copies each. The entries of shard 0 are another number each time. */
const largest = (entries: number): ClusterStatus => ({
  ...STATUS,
  shards: Array.from({ length: SHARDS }, (_, number) => ({
    ...{ shard: number, owner: `server-${number % 64}`, state: 'serving', entries: number === 0 ? entries : 1_000_000 },
    copies: {
      ...{ inSync: 3, wanted: 3, lag: 0 },
      copies: [0, 1, 2].map((i) => ({ member: `server-${(number + i) % 64}`, lacks: '' })),
    },
  })) as unknown as ClusterStatus['shards'],
});
const viewsIn = (
  text: string,
): { readonly shards: readonly { readonly shard: number; readonly entries: number }[] }[] =>
  [...text.matchAll(/^event: view\ndata: (.*)$/gm)].map(
    ([, data = '']) => JSON.parse(data) as ReturnType<typeof viewsIn>[number],
  );

test('while the status does not come, a page hears that, and is cut off when its token is gone', async (t) => {
  let looks = 0;
  const look = (): Promise<ClusterStatus> => {
    looks += 1;
    return new Promise(() => undefined);
  };
  const events = new Events({ hasJoined, look, lookMs: 1, answerMs: 1 });
  t.teardown(() => events.close());
  const token: { lapsed?: string } = {};
  const stream = new Stream();
  add(events, stream, () => token.lapsed);
  while (stream.text.split(': no answer').length < 3) await once(stream, 'written');
  token.lapsed = 'its token was taken away';
  await once(stream, 'close');
  t.is(looks, 1, 'what is not answered is not asked again');
});

test('a page gets all 4,096 shards in its first look, and then those that changed', async (t) => {
  let looks = 0;
  const events = new Events({ hasJoined, look: () => Promise.resolve(largest(++looks)), lookMs: 1 });
  t.teardown(() => events.close());
  const [first, later] = [new Stream(), new Stream()];
  add(events, first);
  while (viewsIn(first.text).length < 3) await once(first, 'written');
  add(events, later);
  await once(later, 'written');
  const sizes = (stream: Stream): number[] => viewsIn(stream.text).map(({ shards }) => shards.length);
  t.deepEqual(sizes(first).slice(0, 3), [SHARDS, 1, 1]);
  t.deepEqual(sizes(later), [SHARDS]);
  t.like(viewsIn(first.text)[2]?.shards[0], { shard: 0, entries: 3 });
});

/** What is written to it stays unread until its test says otherwise. */
class SlowReader extends Stream {
  override write(text: string): boolean {
    this.writableLength += text.length;
    return super.write(text);
  }
}

test('a page that takes a second for each look of 4,096 shards is not cut off, and goes on with the newest', async (t) => {
  let looks = 0;
  const all = new EventEmitter();
  const events = new Events({
    hasJoined,
    look: () => {
      looks += 1;
      all.emit('look');
      return Promise.resolve(largest(looks));
    },
    lookMs: 1,
    nowMs: () => looks * 1000,
  });
  t.teardown(() => events.close());
  const slow = new SlowReader();
  add(events, slow);
  let most = 0;
  while (looks < 30) {
    await once(all, 'look');
    most = Math.max(most, slow.writableLength);
    // It reads every third second.
    if (looks % 3 === 0) slow.writableLength = 0;
  }
  t.false(slow.isDestroyed);
  const views = viewsIn(slow.text);
  t.true(views.length >= 8 && views.length <= 11, String(views.length));
  t.is(views[0]?.shards.length, SHARDS);
  const entries = views.map(({ shards }) => shards[0]?.entries ?? 0);
  t.deepEqual(
    entries,
    [...new Set(entries)].sort((a, b) => a - b),
    'it misses looks, and gets no old one',
  );
  t.true(Number(entries.at(-1)) >= 27);
  t.true(most > 1 << 19 && most < 2 << 20, `at most one look waits for it, of ${most} B`);
});
