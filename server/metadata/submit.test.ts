import test from 'ava';
import { FarkvError } from '../../core/errors.js';
import { REGIONS_MAX } from '../../core/metadata/check-state.js';
import { encodeProposal, type Command } from '../../core/metadata/commands.js';
import { EMPTY } from '../../core/metadata/reduce.js';
import type { Region } from '../../core/metadata/state.js';
import { submit } from './submit.js';

const INCARNATION = '0000000000000001';
const by = { owner: 's2', memberIncarnation: INCARNATION };
const promoted: Command = { t: 'shards-promoted', id: 's2', memberIncarnation: INCARNATION, shards: [] };
const removed: Command = { t: 'copies-removed', by, copies: [] };

/** What s2 calls of the leader, s1, which answers each call when it is told to. */
class Asker {
  readonly calls: string[] = [];
  readonly given: Promise<string>;
  readonly #answers: ((error?: Error) => void)[] = [];

  constructor(command: Command, leads = false) {
    const asks = <T>(call: string, answer: T): Promise<T> => {
      this.calls.push(call);
      return new Promise((resolve, reject) => {
        this.#answers.push((error) => (error === undefined ? resolve(answer) : reject(error)));
      });
    };
    const driver = {
      leads,
      leader: leads ? 2 : 1,
      propose: (): undefined => void this.calls.push('own'),
      status: (): never => {
        throw new Error('nobody is removed');
      },
      state: EMPTY,
      handOver: (): void => undefined,
      confirmLeader: () => asks('quorum', { term: 1, index: 1 }),
    };
    const peers = {
      idOf: (raftId: number): string => `s${raftId}`,
      call: (to: string, method: string): Promise<unknown> => asks(`${to} ${method}`, {}),
    };
    const bytes = encodeProposal({ proposer: INCARNATION, sequence: 1, command });
    this.given = submit({ id: 's2', driver, peers, timeoutMs: 1000 }, bytes, command).then(
      () => 'given',
      (error: unknown) => (error instanceof FarkvError ? error.code : String(error)),
    );
  }

  async answer(error?: Error): Promise<readonly string[]> {
    this.#answers.shift()?.(error);
    await new Promise((resolve) => setImmediate(resolve));
    return this.calls;
  }
}

test('a leader is given what leaves the values to the server that asks only when it has answered', async (t) => {
  for (const command of [promoted, removed]) {
    const asker = new Asker(command);
    t.deepEqual(asker.calls, ['s1 leads']);
    t.deepEqual(await asker.answer(), ['s1 leads', 's1 propose']);
    await asker.answer();
    t.is(await asker.given, 'given');
    const refused = new Asker(command);
    t.deepEqual(await refused.answer(new FarkvError('ERR_NO_LEADER', 'another one leads')), ['s1 leads']);
    t.is(await refused.given, 'ERR_NO_LEADER');
  }
});

test('what takes nothing from others is given at once', async (t) => {
  const copies: Command = { t: 'copies-removed', copies: [] };
  for (const command of [{ t: 'no-op' } as const, copies]) {
    t.deepEqual(new Asker(command).calls, ['s1 propose']);
    const own = new Asker(command, true);
    t.deepEqual(own.calls, ['own']);
    t.is(await own.given, 'given');
  }
});

test('a leader takes values from others only when a quorum has confirmed that it leads', async (t) => {
  for (const command of [promoted, removed]) {
    const asker = new Asker(command, true);
    t.deepEqual(asker.calls, ['quorum']);
    t.deepEqual(await asker.answer(), ['quorum', 'own']);
    t.is(await asker.given, 'given');
    const alone = new Asker(command, true);
    t.deepEqual(await alone.answer(new FarkvError('ERR_NO_LEADER', 'no quorum answers')), ['quorum']);
    t.is(await alone.given, 'ERR_NO_LEADER');
  }
});

/** As large as regions are. */
const region = (n: number): Region => ({
  provider: 'verbs',
  device: 1,
  kind: 'heap',
  segment: n % 65_536,
  tag: 2 ** 32 - 1,
  bytes: 2 ** 40,
  remoteAddress: String(2n ** 64n - 1n),
  rkey: String(2n ** 32n - 1n),
});

test('a leader gives its log what can be read, as the largest shard can, and nothing else', async (t) => {
  const opened = (regions: number): Command => ({
    t: 'shard-opened',
    shard: 0,
    ...by,
    epoch: 1,
    incarnation: INCARNATION,
    layoutEpoch: 1,
    buckets: 1,
    regions: Array.from({ length: regions }, (_, n) => region(n)),
  });
  const largest = new Asker(opened(REGIONS_MAX), true);
  t.is(await largest.given, 'given');
  t.deepEqual(largest.calls, ['own']);
  const larger = new Asker(opened(REGIONS_MAX + 1), true);
  t.is(await larger.given, 'ERR_PROTOCOL');
  t.deepEqual(larger.calls, []);
});
