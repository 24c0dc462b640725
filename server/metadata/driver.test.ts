import test from 'ava';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { FarkvError } from '../../core/errors.js';
import { encodeProposal, type Command } from '../../core/metadata/commands.js';
import { encodeValue } from '../../core/protocol/index.js';
import { LostEntriesError, TERMS_AT_ONCE } from '../../core/raft/index.js';
import { addon } from '../../native/addon.js';
import { Group, MemoryStorage, quiet } from '../../test/support/driver-group.js';
import { bootstrapOf, LEASE } from '../../test/support/metadata-log.js';
import { Log } from '../log.js';
import { FileDisk, RaftStorage } from '../raft-storage/index.js';
import { MetadataDriver } from './driver.js';
import { LeaderDuties, ROTATE_MS } from './leader-duties.js';
import { Proposer, type Outcome } from './proposer.js';

const bootstrap = bootstrapOf(4, ['s1']);

const ok = (outcome: Outcome): boolean => outcome !== 'unknown' && outcome.ok;

test('alone, a member leads at once and applies what it proposes', async (t) => {
  const group = new Group(t, 1);
  t.true(ok(await group.one().proposer.propose(bootstrap, 5000)));
  t.is(group.one().driver.state.clusterId, '1f'.repeat(16));
  t.deepEqual(await group.one().proposer.propose(bootstrap, 5000), {
    ok: false,
    code: 'ERR_BUSY',
    message: 'the cluster exists',
  });
});

test('a confirmed leader names all that it has applied by then, not only what there was when it was asked', async (t) => {
  const group = new Group(t, 1);
  const { driver, proposer } = group.one();
  await group.elected();
  // Both in one turn: the question is confirmed, and the change applied, in the same round.
  const [confirmed] = await Promise.all([driver.confirmLeader(), proposer.propose(bootstrap, 5000)]);
  t.is(driver.state.clusterId, '1f'.repeat(16));
  t.is(confirmed.index, driver.status().commit);
});

test('three members agree, whoever proposes', async (t) => {
  const group = new Group(t, 3);
  await group.elected();
  const outcomes = await Promise.all(
    group.members.map((m) => m.proposer.propose({ ...bootstrap, clusterId: String(m.raftId).repeat(32) }, 10_000)),
  );
  t.is(outcomes.filter(ok).length, 1);
  const clusterIds = (): Set<string> => new Set(group.members.map((m) => m.driver.state.clusterId));
  await group.until(() => clusterIds().size === 1);
  t.regex([...clusterIds()][0] ?? '', /^[123]{32}$/);
});

test("a leader's entries leave at once, before its disk is asked, and nothing else does", async (t) => {
  const group = new Group(t, 3);
  const leader = await group.elected();
  t.true(ok(await leader.proposer.propose(bootstrap, 5000)));
  t.true(group.early.every(({ message }) => message.type === 'append'));
  const ahead = group.early.filter(({ message, onDisk }) => {
    const last = message.type === 'append' ? message.entries.at(-1) : undefined;
    return last !== undefined && last.index > onDisk;
  });
  t.deepEqual(new Set(ahead.map(({ message }) => message.to)).size, 2);
});

test('changes go on after the leader is lost, and each takes effect once', async (t) => {
  const group = new Group(t, 3);
  const old = await group.elected();
  await old.proposer.propose(bootstrap, 10_000);
  const others = group.members.filter((m) => m !== old);
  const applied: string[] = [];
  others[0]?.driver.onApplied(
    ({ proposal, outcome }) =>
      proposal.command.t === 'no-op' &&
      applied.push(`${proposal.sequence} ${outcome === 'duplicate' ? 'again' : 'first'}`),
  );
  group.cut.add(old.raftId);
  const outcomes = await Promise.all(
    Array.from({ length: 20 }, () => others[0]!.proposer.propose({ t: 'no-op' }, 20_000)),
  );
  t.true(outcomes.every(ok));
  t.is(new Set(applied.filter((a) => a.endsWith('first'))).size, 20);
  t.is(applied.filter((a) => a.endsWith('first')).length, 20);
  // The lost one comes back and learns all.
  group.cut.clear();
  await group.until(() => old.driver.status().applied >= others[0]!.driver.status().applied);
  t.false(
    old.driver.leads && others.some((m) => m.driver.leads && m.driver.status().term === old.driver.status().term),
  );
});

test('without a majority a proposal ends with ERR_TIMEOUT and the reason', async (t) => {
  const group = new Group(t, 3);
  await group.elected();
  for (const id of [2, 3]) group.cut.add(id);
  await t.throwsAsync(group.one().proposer.propose({ t: 'no-op' }, 200), { code: 'ERR_TIMEOUT' });
});

test('nothing is sent when it could not be written', async (t) => {
  const group = new Group(t, 3);
  const [first] = group.members;
  first!.storage.answer = () => {
    throw new Error('the disk is gone');
  };
  await group.until(() => first!.failures.length > 0);
  t.deepEqual(
    group.sent.filter((m) => m.from === first!.raftId),
    [],
  );
  t.regex(first!.failures[0]?.message ?? '', /the disk is gone/);
});

test('a full disk stops the changes until there is room, and loses none', async (t) => {
  for (const [quietFullMs, errors] of [
    [undefined, 1],
    [0, 3],
  ] as const) {
    const events: unknown[] = [];
    const log = new Log('info', (level, _, fields) => events.push([level, fields?.event]));
    const group = new Group(t, 1, { log, ...(quietFullMs === undefined ? {} : { quietFullMs }) });
    await group.one().proposer.propose(bootstrap, 5000);
    let full = 0;
    group.one().storage.answer = () => (full++ < 3 ? 'full' : 'done');
    t.true(ok(await group.one().proposer.propose({ t: 'no-op' }, 30_000)));
    t.true(full > 3);
    const said = Array.from({ length: errors }, () => ['error', 'raft-log-full']);
    t.deepEqual(events, [...said, ['info', 'raft-log-has-room']], 'a line at first, one a minute, and one at the end');
  }
});

test('an entry of a later version stops the member before it, with a message', async (t) => {
  const group = new Group(t, 1);
  await group.one().proposer.propose(bootstrap, 5000);
  const { driver, failures } = group.one();
  driver.propose(encodeValue({ format: 9, proposer: '00'.repeat(8), sequence: 1, command: { t: 'bend-space' } }));
  driver.propose(
    encodeProposal({
      proposer: '01'.repeat(8),
      sequence: 1,
      command: {
        t: 'member-join',
        id: 's1',
        incarnation: '02'.repeat(8),
        instance: '03'.repeat(8),
        control: [],
        fabric: [],
        memoryBytes: 1,
      },
    }),
  );
  await group.until(() => failures.length > 0);
  t.is(failures[0]?.code, 'ERR_PROTOCOL_VERSION');
  t.regex(failures[0]?.message ?? '', /entry \d+ .*upgrade this server/);
  t.is(driver.state.members.size, 0);
});

test('messages of other shapes, or between others, are refused', (t) => {
  const group = new Group(t, 3);
  const { driver } = group.one();
  for (const value of [
    undefined,
    5,
    {},
    { type: 'append' },
    { type: 'heartbeat', from: 3, to: 1, term: 1, commit: 0, round: 0 },
    { type: 'heartbeat', from: 2, to: 3, term: 1, commit: 0, round: 0 },
  ]) {
    t.throws(() => driver.receive(2, value), { instanceOf: FarkvError, code: 'ERR_PROTOCOL' });
  }
});

test('a message of a term far ahead raises the term by one step, and one that cannot be true ends nothing', async (t) => {
  const group = new Group(t, 3);
  const leader = await group.elected();
  t.true(ok(await leader.proposer.propose(bootstrap, 10_000)));
  const { term } = leader.driver;
  const [from = 0] = group.members.filter((m) => m !== leader).map((m) => m.raftId);
  const { commit, lastIndex } = leader.driver.status();
  const of = { from, to: leader.raftId, term };
  const snapshot = { index: 2 ** 53 - 1, term, config: { voters: [1, 2, 3], outgoing: [], learners: [] } };
  const entry = { index: lastIndex + 1, term: term + 1, type: 0, data: Uint8Array.of(1, 2, 3) };
  for (const message of [
    { type: 'append', ...of, prevIndex: 0, prevTerm: 0, commit: 2 ** 53 - 1, entries: [] },
    { type: 'append', ...of, term: term + 1, prevIndex: commit, prevTerm: term + 1, commit, entries: [] },
    { type: 'append', ...of, term: term + 1, prevIndex: lastIndex, prevTerm: term, commit, entries: [entry] },
    { type: 'heartbeat', ...of, commit: 0, round: 0 },
    { type: 'heartbeat', ...of, term: term + 1, commit: 2 ** 53 - 1, round: 0 },
    { type: 'snapshot-chunk', ...of, term: term + 1, snapshot, bytes: 0, offset: 0, chunk: new Uint8Array(0) },
    { type: 'append-accept', ...of, index: lastIndex + 1 },
    { type: 'append-reject', ...of, index: 2 ** 53 - 1, hintIndex: 0, hintTerm: 0 },
    { type: 'heartbeat-reply', ...of, round: 2 ** 53 - 1 },
    { type: 'vote', ...of, lastIndex, lastTerm: term, transfer: true },
  ])
    t.throws(() => leader.driver.receive(from, message), { code: 'ERR_PROTOCOL' }, JSON.stringify(message));
  t.is(leader.driver.term, term);
  t.true(leader.driver.leads);
  leader.driver.receive(from, { type: 'heartbeat', ...of, term: 2 ** 53 - 1, commit: 0, round: 0 });
  t.is(leader.driver.term, term + TERMS_AT_ONCE);
  leader.driver.receive(from, { type: 'heartbeat', ...of, term: 2 ** 53 - 1, commit: 0, round: 0 });
  t.is(leader.driver.term, term + TERMS_AT_ONCE, 'once between two writes to the disk');
  const next = await group.elected();
  t.true(ok(await next.proposer.propose({ t: 'no-op' }, 30_000)));
  t.deepEqual(
    group.members.flatMap((m) => m.failures),
    [],
  );
});

test('a snapshot that cannot be read is refused, and what was there stays', async (t) => {
  const group = new Group(t, 3);
  const leader = await group.elected();
  t.true(ok(await leader.proposer.propose(bootstrap, 10_000)));
  const late = group.members.find((m) => m !== leader)!;
  await group.until(() => late.driver.state.clusterId !== '');
  const { term, lastIndex } = late.driver.status();
  const snapshot = { index: lastIndex + 5, term, config: { voters: [1, 2, 3], outgoing: [], learners: [] } };
  const chunk = { type: 'snapshot-chunk', from: leader.raftId, to: late.raftId, term, snapshot, bytes: 3, offset: 0 };
  t.throws(() => late.driver.receive(leader.raftId, { ...chunk, chunk: Uint8Array.of(1, 2, 3) }), {
    code: 'ERR_PROTOCOL',
    message: /cannot be read/,
  });
  t.true(ok(await late.proposer.propose({ t: 'no-op' }, 30_000)));
  t.deepEqual(late.failures, []);
});

test('a member far ahead of all others, and one far behind, come together again', async (t) => {
  const term = 2 ** 24 + 6;
  const group = new Group(t, 3, { restoredOf: (raftId) => (raftId === 3 ? { term } : {}) });
  await group.until(() => group.members.every((m) => m.driver.term >= term && m.driver.leader !== 0));
  t.true(ok(await group.one().proposer.propose(bootstrap, 30_000)));
});

test('a member that is told to have lost entries ends when most take the one that says so for their leader', async (t) => {
  for (const isLed of [false, true]) {
    const group = new Group(t, 3, { isLedBy: () => Promise.resolve(isLed) });
    const leader = await group.elected();
    const other = group.members.find((m) => m !== leader)!;
    const of = { from: leader.raftId, to: other.raftId, term: leader.driver.term };
    await group.until(() => other.driver.leader === leader.raftId);
    const told = { type: 'heartbeat', ...of, commit: 1000, round: 0 };
    t.throws(() => other.driver.receive(leader.raftId, told), { code: 'ERR_PROTOCOL', message: /not in the log/ });
    if (isLed) await group.until(() => other.failures.length > 0);
    else t.true(ok(await other.proposer.propose({ t: 'no-op' }, 30_000)));
    t.is(other.failures.length, isLed ? 1 : 0);
    if (isLed) t.true(other.failures[0]?.cause instanceof LostEntriesError);
  }
});

test('a long log is replaced by a snapshot, from which a member that was away catches up', async (t) => {
  const group = new Group(t, 3, { compactBytes: 64 << 10 });
  await group.elected();
  const away = group.members.find((m) => !m.driver.leads)!;
  group.cut.add(away.raftId);
  const proposer = (await group.elected()).proposer;
  await proposer.propose(bootstrap, 10_000);
  for (let i = 0; i < 3000; i += 30) {
    await Promise.all(Array.from({ length: 30 }, () => proposer.propose({ t: 'no-op' }, 20_000)));
  }
  const leader = await group.elected();
  await group.until(() => leader.storage.snapshots.length > 0);
  t.true(leader.driver.status().firstIndex > 1);
  group.cut.clear();
  await group.until(() => away.driver.state.clusterId !== '');
  t.deepEqual(away.driver.state, leader.driver.state);
});

test('a member that starts from a snapshot has its state', async (t) => {
  const group = new Group(t, 1, { compactBytes: 1 });
  await group.one().proposer.propose(bootstrap, 5000);
  await group.one().proposer.propose({ t: 'no-op' }, 5000);
  const snapshot = group.one().storage.snapshots.at(-1)!;
  const again = new MetadataDriver({
    storage: new MemoryStorage(),
    raftId: 1,
    incarnation: 7,
    random: () => 0.5,
    tickMs: 5,
    electionMs: 50,
    log: quiet,
    send: () => undefined,
    fatal: () => undefined,
    restored: { hardState: { term: 5, vote: 0, commit: snapshot.meta.index }, snapshot, entries: [] },
  });
  t.is(again.state.clusterId, '1f'.repeat(16));
});

test('with a real log on a real disk, a member that is started again has what was committed, compacted or not', async (t) => {
  const path = mkdtempSync(join(tmpdir(), 'farkv-driver-'));
  t.teardown(() => rmSync(path, { recursive: true, force: true }));
  const open = () =>
    RaftStorage.open({
      disk: new FileDisk(path, addon),
      identity: { clusterId: 'x', memberId: 1 },
      bootstrap: [1],
      checksum: (bytes) => addon.crc32c(bytes),
      rebuild: '',
      notice: (text) => t.log(text),
      fatal: (what) => t.fail(what),
    });
  let expected: unknown;
  for (let round = 1; round <= 3; round++) {
    const { storage, restored } = open();
    if (round === 3) t.true((restored.snapshot?.meta.index ?? 0) > 0);
    const driver = new MetadataDriver({
      storage,
      restored,
      raftId: 1,
      incarnation: round,
      random: () => 0.5,
      tickMs: 5,
      electionMs: 50,
      log: quiet,
      send: () => undefined,
      fatal: (error) => t.fail(error.message),
      compactBytes: 32 << 10,
    });
    const proposer = new Proposer({
      proposer: round.toString(16).padStart(16, '0'),
      retryMs: 50,
      formatVersion: () => 1,
      submit: (bytes) =>
        driver.propose(bytes) === undefined ? Promise.resolve() : Promise.reject(new Error('not yet')),
    });
    driver.onApplied((applied) => proposer.applied(applied));
    driver.start();
    // Until its first own entry is applied, a new leader need not have applied what the last one committed.
    await proposer.propose({ t: 'no-op' }, 10_000);
    t.deepEqual(driver.state, (expected ?? driver.state) as typeof driver.state);
    await proposer.propose(bootstrap, 10_000);
    const replaces = driver.state.members.get('s1')?.incarnation;
    t.true(
      ok(
        await proposer.propose(
          {
            t: 'member-join',
            id: 's1',
            incarnation: round.toString(16).padStart(16, '0'),
            ...(replaces === undefined ? {} : { replaces }),
            instance: '03'.repeat(8),
            control: [],
            fabric: [],
            memoryBytes: 1,
          },
          10_000,
        ),
      ),
    );
    for (let i = 0; i < 10; i++)
      await Promise.all(Array.from({ length: 30 }, () => proposer.propose({ t: 'no-op' }, 10_000)));
    expected = driver.state;
    proposer.close();
    driver.stop();
    storage.close();
  }
});

test('what one leader took and lost is given to the next as soon as it is known', async (t) => {
  const given: Uint8Array[] = [];
  const proposer = new Proposer({
    proposer: '00'.repeat(8),
    retryMs: 600_000,
    formatVersion: () => 1,
    submit: (bytes) => Promise.resolve(void given.push(bytes)),
  });
  t.teardown(() => proposer.close());
  const outcome = proposer.propose({ t: 'no-op' }, 600_000);
  t.is(given.length, 1);
  proposer.leaderChanged();
  t.is(given.length, 2);
  t.deepEqual(given[1], given[0], 'the same proposal, which is applied once');
  proposer.close();
  await t.throwsAsync(outcome, { code: 'ERR_CLOSED' });
  proposer.leaderChanged();
  t.is(given.length, 2);
});

test('a proposer keeps to its window, and its waits end when it closes', async (t) => {
  const given: number[] = [];
  const proposer = new Proposer({
    proposer: '00'.repeat(8),
    retryMs: 10_000,
    formatVersion: () => 1,
    submit: () => Promise.resolve(void given.push(1)),
  });
  const waits = Array.from({ length: 100 }, () => proposer.propose({ t: 'no-op' }, 60_000));
  await new Promise((resolve) => setImmediate(resolve));
  t.is(given.length, 32);
  proposer.close();
  const settled = await Promise.allSettled(waits);
  t.true(settled.every((s) => s.status === 'rejected' && (s.reason as FarkvError).code === 'ERR_CLOSED'));
});

test('the leader makes the cluster, gives the shards out when a server stays away, and exchanges the ticket secret every day', async (t) => {
  let wallMs = 1000;
  const group = new Group(t, 1);
  const { driver, proposer } = group.one();
  const duties = new LeaderDuties({
    made: { shards: 4, voters: ['s1', 's2'], votersMax: 3, ownerLease: LEASE },
    hasJoined: () => true,
    assignAfterMs: 30,
    log: quiet,
    driver: {
      get leads() {
        return driver.leads;
      },
      get term() {
        return driver.term;
      },
      get state() {
        return driver.state;
      },
      // The Raft group stays as the test made it.
      status: () => driver.status(),
      proposeChange: () => undefined,
      knownFormat: driver.knownFormat,
    },
    listen: () => Promise.resolve(false),
    grantor: () => undefined,
    nowMs: () => 0,
    proposeInTerm: () => Promise.reject(new Error('nothing is to be taken')),
    propose: (command, ms) => proposer.propose(command, ms),
    randomHex: (n) => 'ab'.repeat(n),
    wallMs: () => wallMs,
  });
  t.teardown(() => duties.close());
  driver.onLeader(() => duties.look());
  driver.onState(() => duties.look());
  await group.until(() => driver.state.clusterId !== '');
  t.is(driver.state.shards.length, 4);
  await proposer.propose(
    {
      t: 'member-join',
      id: 's1',
      incarnation: '02'.repeat(8),
      instance: '03'.repeat(8),
      control: [],
      fabric: [],
      memoryBytes: 1,
    },
    5000,
  );
  t.true(driver.state.shards.every((s) => s.owner === undefined));
  await group.until(() => driver.state.shards.every((s) => s.owner === 's1'));
  t.like(driver.state.tickets, { number: 0, rotatedMs: 1000 });
  wallMs += ROTATE_MS;
  duties.look();
  // It is done at the latest when others have been.
  for (let others = 0; others < 20 && driver.state.tickets?.number === 0; others++)
    await proposer.propose({ t: 'tickets-revoke', tenant: 0, atMs: wallMs }, 5000);
  t.like(driver.state.tickets, { number: 1, rotatedMs: wallMs, previous: 'ab'.repeat(16) });
  // The clock was a day ahead, and is right again: the next exchange does not wait until it is there once more.
  wallMs -= ROTATE_MS;
  duties.look();
  for (let others = 0; others < 20 && driver.state.tickets?.number === 1; others++)
    await proposer.propose({ t: 'tickets-revoke', tenant: 0, atMs: wallMs }, 5000);
  t.like(driver.state.tickets, { number: 2, rotatedMs: wallMs });
});

test('what servers of this format would stop at is not even proposed', async (t) => {
  const given: number[] = [];
  let formatVersion = 1;
  const proposer = new Proposer({
    proposer: '00'.repeat(8),
    retryMs: 10_000,
    formatVersion: () => formatVersion,
    submit: () => Promise.resolve(void given.push(1)),
  });
  t.teardown(() => proposer.close());
  const raise: Command = { t: 'raise-format', format: 3 };
  await t.throwsAsync(proposer.propose(raise, 1000), {
    code: 'ERR_UNSUPPORTED',
    message: /at format 1 until every server/,
  });
  t.deepEqual(given, []);
  formatVersion = 2;
  proposer.propose(raise, 60_000).catch(() => undefined);
  await new Promise((resolve) => setImmediate(resolve));
  t.is(given.length, 1);
});
