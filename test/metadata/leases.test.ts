/**
 * Both sides of owners' leases around what core/metadata/owner-leases.ts decides: what is waited for before a lease
 * counts, and who is given one.
 */
import test, { type ExecutionContext } from 'ava';
import { FarkvError } from '../../core/errors.js';
import type { Command } from '../../core/metadata/commands.js';
import { GrantedLeases, heldMs } from '../../core/metadata/owner-leases.js';
import { hexOf, joinOf, LEASE, MetadataLog } from '../support/metadata-log.js';
import { Log } from '../../server/log.js';
import type { Confirmed } from '../../server/metadata/driver.js';
import { LeaderDuties, type LeaderDutiesOptions } from '../../server/metadata/leader-duties.js';
import { LeaseHolder, type LeaseHolderOptions } from '../../server/metadata/lease-holder.js';
import { LeaseGrantor, type LeaseGrant, type LeaseRequest } from '../../server/metadata/lease-grantor.js';
import { LocalProposer } from '../../server/metadata/local-proposer.js';

const settle = async (): Promise<void> => {
  for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve));
};

interface Held<T> {
  readonly promise: Promise<T>;
  readonly resolve: (value: T) => void;
  readonly reject: (error: Error) => void;
}
function held<T>(): Held<T> {
  let settleWith: Pick<Held<T>, 'resolve' | 'reject'> | undefined;
  const promise = new Promise<T>((resolve, reject) => (settleWith = { resolve, reject }));
  return { promise, ...settleWith! };
}

function keeper(t: { teardown: (f: () => void) => void }, options: Partial<LeaseHolderOptions> = {}) {
  const until: bigint[] = [];
  const clock = { ns: 5_000_000_000n };
  const asked: LeaseRequest[] = [];
  const lines: string[] = [];
  const made = new LeaseHolder({
    request: { incarnation: hexOf(1), knows: 2 },
    ask: (request) => {
      asked.push(request);
      return Promise.resolve({ leaseMs: 1000, index: 7 });
    },
    applied: () => Promise.resolve(),
    fence: () => Promise.resolve(),
    setGrantUntil: (ns) => until.push(ns),
    bootTimeNs: () => clock.ns,
    leaseMs: 1000,
    log: new Log('warn', (_, text) => lines.push(text)),
    ...options,
  });
  t.teardown(() => made.close());
  return { made, until, clock, asked, lines };
}

test('an owner counts from when it asked, only when its log is as far as the grant and what was taken is closed, in that order', async (t) => {
  const [answer, applied, fence] = [held<LeaseGrant>(), held<undefined>(), held<undefined>()];
  const waited: number[] = [];
  const { made, until, clock } = keeper(t, {
    ask: () => answer.promise,
    fence: () => fence.promise,
    applied: (index) => {
      waited.push(index);
      return applied.promise;
    },
  });
  made.start();
  clock.ns += 400_000_000n;
  answer.resolve({ leaseMs: 1000, index: 7 });
  await settle();
  t.deepEqual([waited, until], [[7], []]);
  applied.resolve(undefined);
  await settle();
  t.deepEqual(until, []);
  fence.resolve(undefined);
  await settle();
  t.deepEqual(until, [6_000_000_000n]);
  t.true(made.held);
  clock.ns = 6_000_000_000n;
  t.false(made.held);
});

test('an owner that closes while its question is under way is given nothing any more', async (t) => {
  const answer = held<LeaseGrant>();
  const { made, until } = keeper(t, { ask: () => answer.promise });
  made.start();
  made.close();
  answer.resolve({ leaseMs: 1000, index: 7 });
  await settle();
  t.deepEqual(until, []);
});

test('without an answer the lease runs out by itself, and the owner says so once', async (t) => {
  let works = true;
  const { made, until, clock, lines } = keeper(t, {
    ask: () =>
      works
        ? Promise.resolve({ leaseMs: 1000, index: 7 })
        : Promise.reject(new FarkvError('ERR_NO_LEADER', 'nobody leads')),
  });
  made.start();
  await made.first;
  works = false;
  clock.ns += 2_000_000_000n;
  for (let i = 0; i < 3; i++) {
    made.renew();
    await settle();
  }
  t.deepEqual(until, [6_000_000_000n]);
  t.is(lines.length, 1);
  t.regex(lines[0] ?? '', /has no lease.*nobody leads/);
});

function grantor(metadata: MetadataLog) {
  const clock = { ms: 0 };
  const questions: Held<Confirmed>[] = [];
  const driver = {
    leads: true,
    term: 3,
    state: metadata.state,
    confirmLeader: () => {
      questions.push(held<Confirmed>());
      return questions.at(-1)!.promise;
    },
  };
  const lines: string[] = [];
  const log = new Log('info', (level, text) => lines.push(`${level} ${text}`));
  const made = new LeaseGrantor({ driver, nowMs: () => clock.ms, changed: () => undefined, log });
  const ask = (id: string, incarnation: number, end = false) =>
    made.ask(id, { incarnation: hexOf(incarnation), knows: 2, end });
  return { made, clock, questions, driver, ask, lines };
}

test('a lease is granted after a quorum has answered, to the last start of a member, until the leader takes its shards', async (t) => {
  const { made, questions, ask, clock } = grantor(MetadataLog.cluster(2, ['s1', 's2']));
  const first = ask('s1', 1);
  await settle();
  t.is(made.current, undefined);
  clock.ms = 100;
  questions[0]!.resolve({ term: 3, index: 9 });
  t.deepEqual(await first, { leaseMs: LEASE.leaseMs, index: 9 });
  t.is(made.current!.leases.overAt('s1'), 100 + heldMs(LEASE));
  const wrong = ask('s1', 8);
  questions[1]!.resolve({ term: 3, index: 9 });
  await t.throwsAsync(wrong, { code: 'ERR_NOT_OWNER' });
  made.current!.leases.withhold('s1');
  const late = ask('s1', 1);
  questions[2]!.resolve({ term: 3, index: 9 });
  await t.throwsAsync(late, { code: 'ERR_BUSY' });
});

test('an owner is heard when its question comes, and its silence counts only as far as a quorum has confirmed the leader', async (t) => {
  const { made, questions, ask, clock } = grantor(MetadataLog.cluster(2, ['s1', 's2']));
  const answered = async (question: Promise<unknown>): Promise<void> => {
    questions.at(-1)!.resolve({ term: 3, index: 9 });
    await question;
  };
  await answered(ask('s1', 1));
  await answered(ask('s2', 2));
  const { leases } = made.current!;
  for (clock.ms = 200; clock.ms < 1000; clock.ms += 200) await answered(made.listen());
  clock.ms = 1100;
  const asked = ask('s2', 2);
  const question = questions.at(-1)!;
  clock.ms = 1150;
  t.true(leases.over('s1', clock.ms));
  t.false(leases.dead('s1', clock.ms));
  await answered(made.listen());
  t.true(leases.dead('s1', clock.ms));
  t.true(leases.over('s2', clock.ms));
  t.false(leases.dead('s2', clock.ms));
  question.resolve({ term: 3, index: 9 });
  await asked;
});

test('a leader that could not hear a quorum for a lease or longer says so, once in ten seconds', async (t) => {
  const { made, questions, clock, lines } = grantor(MetadataLog.cluster(2, ['s1', 's2']));
  const confirmed = async (ms: number): Promise<void> => {
    clock.ms = ms;
    const listened = made.listen();
    questions.at(-1)!.resolve({ term: 3, index: 9 });
    await listened;
  };
  await confirmed(0);
  await confirmed(LEASE.leaseMs - 1);
  t.deepEqual(lines, []);
  await confirmed(2500);
  await confirmed(5000);
  await confirmed(13_000);
  t.deepEqual(lines, [
    'info this leader could not hear a quorum for 1501 ms: owners get a grace before they are taken for dead',
    'info (1 more like that were not written)',
    'info this leader could not hear a quorum for 8000 ms: owners get a grace before they are taken for dead',
  ]);
});

/** The duties of a leader of this metadata in term 5. What else it is given is the test's. */
function dutiesOf(
  t: ExecutionContext,
  metadata: MetadataLog,
  given: Pick<LeaderDutiesOptions, 'grantor' | 'listen' | 'propose' | 'proposeInTerm'> & {
    readonly nowMs?: () => number;
  },
  knownFormat = 1,
): LeaderDuties {
  const duties = new LeaderDuties({
    made: { shards: 2, voters: ['s1', 's2'], votersMax: 3, ownerLease: LEASE },
    hasJoined: () => true,
    assignAfterMs: 1,
    log: new Log('error', () => undefined),
    nowMs: () => 0,
    randomHex: (n) => 'ab'.repeat(n),
    driver: {
      leads: true,
      term: 1,
      get state() {
        return metadata.state;
      },
      knownFormat,
      status: () => ({ progress: [], lastIndex: 0 }) as never,
      proposeChange: () => undefined,
    },
    ...given,
  });
  t.teardown(() => duties.close());
  return duties;
}

test('the leader asks a quorum before it takes the shards of an owner that may be dead, once, for as long as no quorum answers', async (t) => {
  const log = MetadataLog.cluster(2, ['s1', 's2']);
  const leases = new GrantedLeases(LEASE, 0);
  const clock = { ms: 0 };
  for (; clock.ms < heldMs(LEASE) - 1; clock.ms++) leases.confirmed(clock.ms);
  leases.grant('s1', clock.ms);
  const questions: Held<boolean>[] = [];
  const asked = held<undefined>();
  const taken = held<Command>();
  const duties = dutiesOf(t, log, {
    nowMs: () => clock.ms,
    grantor: () => ({ term: 5, leases, knows: new Map() }),
    listen: () => {
      questions.push(held<boolean>());
      asked.resolve(undefined);
      return questions.at(-1)!.promise;
    },
    propose: () => Promise.reject(new Error('not in this term')),
    proposeInTerm: (command) => {
      taken.resolve(command);
      duties.close();
      return Promise.resolve({ ok: true });
    },
  });
  duties.look();
  await asked.promise;
  clock.ms += 10_000;
  for (let i = 0; i < 5; i++) {
    duties.look();
    // Behind every timer that this look could have set.
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  t.is(questions.length, 1);
  clock.ms -= 9_999;
  leases.confirmed(clock.ms);
  questions[0]!.resolve(true);
  t.like(await taken.promise, { t: 'shards-taken', id: 's2' });
});

test('the leader has heard of a server that starts again by its join, though it has not asked for a lease yet', async (t) => {
  const log = MetadataLog.cluster(2, ['s1', 's2']);
  const leases = new GrantedLeases(LEASE, 0);
  const clock = { ms: 0 };
  const hear = (ms: number): void => {
    for (const end = clock.ms + ms; clock.ms < end; clock.ms++) leases.confirmed(clock.ms);
  };
  const taken: Command[] = [];
  const duties = dutiesOf(t, log, {
    nowMs: () => clock.ms,
    grantor: () => ({ term: 5, leases, knows: new Map() }),
    listen: () => new Promise(() => undefined),
    propose: () => Promise.reject(new Error('not in this term')),
    proposeInTerm: (command) => {
      taken.push(command);
      duties.close();
      return Promise.resolve({ ok: true });
    },
  });
  duties.look();
  hear(heldMs(LEASE) + 1);
  leases.grant('s1', clock.ms);
  log.do(joinOf('s2', 8, 2));
  duties.look();
  await settle();
  t.deepEqual(taken, []);
  duties.close();
});

test('nobody holds a lease before there is a cluster', async (t) => {
  const { made, questions, ask } = grantor(new MetadataLog());
  const asked = ask('s1', 1);
  questions[0]!.resolve({ term: 3, index: 9 });
  await t.throwsAsync(asked, { code: 'ERR_NO_LEADER' });
  t.is(made.current, undefined);
});

test('what one term knows the next does not', async (t) => {
  const { made, questions, ask, driver } = grantor(MetadataLog.cluster(2, ['s1', 's2']));
  const first = ask('s1', 1);
  questions[0]!.resolve({ term: 3, index: 9 });
  await first;
  const before = made.current!;
  t.true(before.leases.alive('s1', 0));
  driver.term = 4;
  t.is(made.current, undefined);
  const next = made.look();
  questions[1]!.resolve({ term: 4, index: 12 });
  await next;
  t.false(made.current!.leases.alive('s1', 0));
  t.false(made.current!.leases.over('s1', heldMs(LEASE) - 1));
  driver.leads = false;
  t.is(made.current, undefined);
});

test('the format is raised in the term in which the servers reported what they know, or not at all', async (t) => {
  const log = MetadataLog.cluster(1, ['s1']);
  const inTerm: [Command, number][] = [];
  const duties = dutiesOf(
    t,
    log,
    {
      listen: () => Promise.resolve(false),
      grantor: () => ({ term: 5, leases: new GrantedLeases(LEASE, 0), knows: new Map([['s1', 2]]) }),
      // Any leader might take that.
      propose: () => {
        duties.close();
        return Promise.resolve({ ok: true });
      },
      proposeInTerm: (command, term) => {
        inTerm.push([command, term]);
        duties.close();
        return Promise.resolve({ ok: true });
      },
    },
    2,
  );
  duties.look();
  await settle();
  t.deepEqual(inTerm, [[{ t: 'raise-format', format: 2 }, 5]]);
});

test('what rests on a term is proposed in it or not at all, and its fate is left open when the term ends', async (t) => {
  const entries: Uint8Array[] = [];
  const driver = { leads: true, term: 3, propose: (bytes: Uint8Array) => void entries.push(bytes) };
  const local = new LocalProposer(driver, hexOf(77));
  await t.throwsAsync(local.propose({ t: 'no-op' }, 2), { code: 'ERR_NO_LEADER' });
  t.is(entries.length, 0);
  const open = local.propose({ t: 'no-op' }, 3);
  const done = local.propose({ t: 'no-op' }, 3);
  local.applied({ proposal: { proposer: hexOf(77), sequence: 2, command: { t: 'no-op' } }, outcome: { ok: true } });
  t.deepEqual(await done, { ok: true });
  driver.term = 4;
  local.look();
  await t.throwsAsync(open, { code: 'ERR_NO_LEADER' });
  t.is(entries.length, 2);
});
