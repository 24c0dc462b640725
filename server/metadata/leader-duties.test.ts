import test, { type ExecutionContext } from 'ava';
import { setImmediate as turn } from 'node:timers/promises';
import type { Command, ServerAdd } from '../../core/metadata/commands.js';
import { GrantedLeases } from '../../core/metadata/owner-leases.js';
import { raftIdOf } from '../../core/metadata/placement.js';
import { EMPTY } from '../../core/metadata/reduce.js';
import type { Member, MetadataState } from '../../core/metadata/state.js';
import { Group, quiet } from '../../test/support/driver-group.js';
import { bootstrapOf, hexOf, joinOf, LEASE } from '../../test/support/metadata-log.js';
import { LeaderDuties } from './leader-duties.js';

const [S1, S2, S3] = ['s1', 's2', 's3'].map(raftIdOf) as [number, number, number];

const comes = (id: string): ServerAdd => ({
  t: 'server-add',
  id,
  raftId: raftIdOf(id),
  instance: hexOf(raftIdOf(id)),
  control: [],
});

/**
 * The leader of a cluster of its own; what it sends to others is lost, and the test answers for them. It checks every
 * `electionMs` whom it has heard.
 */
async function alone(t: ExecutionContext, electionMs: number) {
  const group = new Group(t, 1, { ids: [S1], electionMs, send: () => undefined });
  const { driver, proposer } = group.one();
  const given: Command[] = [];
  const leases = new GrantedLeases(LEASE, 0);
  const duties = new LeaderDuties({
    made: { shards: 1, voters: ['s1'], votersMax: 3, ownerLease: LEASE },
    hasJoined: () => true,
    assignAfterMs: 60_000,
    log: quiet,
    driver,
    listen: () => new Promise(() => undefined),
    grantor: () => ({ term: driver.term, leases, knows: new Map() }),
    nowMs: () => 0,
    proposeInTerm: () => Promise.reject(new Error('no shard changes its owner')),
    propose: (command, ms) => {
      given.push(command);
      return proposer.propose(command, ms);
    },
    randomHex: (n) => 'ab'.repeat(n),
  });
  driver.onState(() => duties.look());
  driver.onConfig(() => duties.look());
  driver.onLeader(() => duties.look());
  t.teardown(() => duties.close());
  const until = async (condition: () => boolean): Promise<void> => {
    while (!condition()) await turn();
  };
  await until(() => driver.leads);
  await proposer.propose(bootstrapOf(1, ['s1']), 5000);
  await proposer.propose(joinOf('s1', 1), 5000);
  /** The member has the whole log. */
  const accepts = (from: number): void => {
    const { term, lastIndex } = driver.status();
    driver.receive(from, { type: 'append-accept', from, to: S1, term, index: lastIndex });
  };
  const isActive = (id: number): boolean => driver.status().progress.some((p) => p.id === id && p.active);
  return { driver, proposer, duties, given, until, accepts, isActive };
}

test('a learner that has never answered gets no vote, however short the log; one that answers does', async (t) => {
  const { driver, proposer, duties, given, until, accepts, isActive } = await alone(t, 600_000);
  await proposer.propose(comes('s2'), 5000);
  await proposer.propose(comes('s3'), 5000);
  const votes = (): boolean => given.some((command) => command.t === 'voters-set');
  await until(() => votes() || (driver.status().config.learners.length === 2 && driver.status().configCommitted));
  t.false(votes());
  t.true(isActive(S2) && isActive(S3), 'as long as the leader has not checked');
  t.true(driver.status().lastIndex < 64);
  duties.look();
  // Ends behind whatever the leader proposed before.
  await proposer.propose({ t: 'no-op' }, 5000);
  duties.look();
  t.false(votes());
  t.deepEqual(driver.state.voters, ['s1']);
  for (const id of [S2, S3]) accepts(id);
  duties.look();
  await until(() => driver.state.voters.length === 3);
  t.deepEqual(driver.state.voters, ['s1', 's2', 's3']);
  await until(() => driver.status().config.voters.length === 3);
});

test('learners that die after the metadata gave them votes do not stop the leader, and vote when most are back', async (t) => {
  const { driver, proposer, duties, until, accepts, isActive } = await alone(t, 50);
  await proposer.propose(comes('s2'), 5000);
  await proposer.propose(comes('s3'), 5000);
  await until(() => driver.status().config.learners.length === 2 && driver.status().configCommitted);
  for (const id of [S2, S3]) accepts(id);
  await until(() => !isActive(S2) && !isActive(S3));
  await proposer.propose({ t: 'voters-set', voters: ['s1', 's2', 's3'] }, 5000);
  duties.look();
  await proposer.propose({ t: 'no-op' }, 5000);
  t.deepEqual(driver.status().config.voters, [S1]);
  // Two of three: nobody calls for another look.
  await until(() => {
    accepts(S2);
    return driver.status().config.voters.length === 3;
  });
});

test('failovers that a start applies again, or missed, are none of its own; later ones are counted', (t) => {
  /** Of one shard; `start`: the start of s1, which is this server, that the metadata names. */
  const stateOf = (owner: string, epoch: number, start: string): MetadataState => ({
    ...EMPTY,
    clusterId: 'ab'.repeat(16),
    shards: [{ shard: 0, worker: 0, epoch, owner, layoutEpoch: 0, buckets: 0, regions: [] }],
    members: new Map(['s1', 's2', 's3'].map((id) => [id, { id, incarnation: id === 's1' ? start : 'a' } as Member])),
  });
  let state: MetadataState = EMPTY;
  const nothing = () => Promise.reject(new Error('this server does not lead'));
  const duties = new LeaderDuties({
    made: { shards: 1, voters: ['s1'], votersMax: 3, ownerLease: LEASE },
    hasJoined: ({ members }) => members.get('s1')?.incarnation === 'now',
    assignAfterMs: 60_000,
    log: quiet,
    driver: {
      ...{ leads: false, term: 1, knownFormat: 1 },
      get state() {
        return state;
      },
      status: () => ({ progress: [], lastIndex: 0 }) as never,
      proposeChange: () => undefined,
    },
    listen: () => new Promise(() => undefined),
    grantor: () => undefined,
    nowMs: () => 0,
    proposeInTerm: nothing,
    propose: nothing,
    randomHex: (n) => 'ab'.repeat(n),
  });
  t.teardown(() => duties.close());
  const applied = (...given: Parameters<typeof stateOf>): void => {
    state = stateOf(...given);
    duties.look();
  };
  applied('s1', 1, 'before');
  applied('s2', 2, 'before');
  applied('s3', 3, 'now');
  t.is(duties.failedOver, 0, 'also what came with its joining');
  t.deepEqual(duties.shown.failovers, []);
  applied('s2', 4, 'now');
  t.is(duties.failedOver, 1);
  t.like(duties.shown.failovers, [{ from: 's3', to: 's2', why: 'silent' }]);
});
