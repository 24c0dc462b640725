/**
 * What operators and joining servers ask for: changes of who belongs to the cluster and which server owns which shard.
 * Each is a command of the metadata, proposed by whichever server was asked; an answer means that this server has
 * applied it.
 */
import { FarkvError } from '../core/errors.js';
import { checkControlAddresses, memberId, SHARDS_MAX, shardNumber } from '../core/metadata/check-state.js';
import type { Command } from '../core/metadata/commands.js';
import { usable } from '../core/metadata/leader-policy.js';
import { raftIdOf } from '../core/metadata/placement.js';
import { planRebalance, type PlannedMove } from '../core/metadata/plan.js';
import { boolean, list, record } from '../core/protocol/check.js';
import type { MetadataDriver } from './metadata/driver.js';
import { checkJoinRequest, type JoinAnswer } from './metadata/join.js';
import type { LeaseGrantor } from './metadata/lease-grantor.js';
import type { Peers } from './metadata/peers.js';
import type { Outcome } from './metadata/proposer.js';

export interface AdminContext {
  readonly id: string;
  readonly driver: Pick<MetadataDriver, 'state' | 'leader' | 'leads'>;
  readonly peers: Pick<Peers, 'call' | 'idOf' | 'servers'>;
  readonly grantor: Pick<LeaseGrantor, 'current'>;
  readonly propose: (command: Command, timeoutMs: number) => Promise<Outcome>;
  /** Milliseconds of CLOCK_BOOTTIME. */
  readonly nowMs: () => number;
}

const PROPOSE_MS = 4000;
const CALL_MS = 4000;

const checkId = record<{ readonly id: string }>({ id: memberId });
const checkAdd = record<{ readonly id: string; readonly control: readonly string[] }>({
  id: memberId,
  control: checkControlAddresses,
});
const checkDrain = record<{ readonly id: string; readonly draining: boolean }>({ id: memberId, draining: boolean });
const checkMove = record<{ readonly shard: number; readonly to: string }>({ shard: shardNumber, to: memberId });
export const checkPlan = list(record<PlannedMove>({ shard: shardNumber, from: memberId, to: memberId }), SHARDS_MAX);

async function done(context: AdminContext, command: Command): Promise<void> {
  const outcome = await context.propose(command, PROPOSE_MS);
  if (outcome === 'unknown')
    throw new FarkvError(
      'ERR_BUSY',
      'the metadata changed meanwhile: check farkv status, and repeat the command if needed',
    );
  if (!outcome.ok) throw new FarkvError(outcome.code, outcome.message);
}

/** A server asks for its place. It is told who the servers are, itself among them. */
export async function answerJoin(context: AdminContext, id: string, args: unknown): Promise<JoinAnswer> {
  const { instance, control } = checkJoinRequest(args, 'join');
  const there = (): boolean => context.driver.state.servers.some((s) => s.id === id && s.instance === instance);
  if (context.driver.state.clusterId === '') throw new FarkvError('ERR_NO_LEADER', 'the cluster is not made yet');
  if (!there()) {
    // The same number as that server's data directory gives (data-directory.ts).
    const outcome = await context.propose(
      { t: 'server-add', id, raftId: raftIdOf(`${id}/${instance}`), instance, control },
      PROPOSE_MS,
    );
    if (outcome !== 'unknown' && !outcome.ok && !there()) throw new FarkvError(outcome.code, outcome.message);
  }
  if (!there()) throw new FarkvError('ERR_BUSY', 'the metadata has changed meanwhile');
  return { clusterId: context.driver.state.clusterId, servers: context.peers.servers };
}

async function remove(context: AdminContext, id: string): Promise<void> {
  const server = context.driver.state.servers.find((s) => s.id === id);
  if (server === undefined) throw new FarkvError('ERR_CONFIG', `${id} is not one of the servers`);
  await done(context, { t: 'server-remove', id, raftId: server.raftId });
}

async function move(context: AdminContext, shard: number, to: string): Promise<void> {
  const { driver } = context;
  const s = driver.state.shards[shard];
  if (s === undefined)
    throw new FarkvError('ERR_CONFIG', `there is no shard ${shard}; there are ${driver.state.shards.length}`);
  await done(context, { t: 'shard-move', shard, epoch: s.epoch, to });
}

/** Only the leader knows who is alive. */
async function plan(context: AdminContext): Promise<readonly PlannedMove[]> {
  const { driver, peers, grantor, nowMs } = context;
  const { current } = grantor;
  if (current !== undefined) return planRebalance(driver.state, usable(driver.state, current.leases, nowMs()));
  const leader = peers.idOf(driver.leader);
  if (leader === undefined || driver.leads)
    throw new FarkvError('ERR_NO_LEADER', 'the metadata group has no leader at present');
  return checkPlan(await peers.call(leader, 'shard-plan', {}, CALL_MS), 'plan');
}

export const OPERATORS_CALLS: ReadonlySet<string> = new Set([
  'member-add',
  'member-remove',
  'drain',
  'shard-move',
  'shard-plan',
]);

/** Undefined when there is no such call for operators. */
export async function answerAdminCall(context: AdminContext, method: string, args: unknown): Promise<unknown> {
  switch (method) {
    case 'member-add': {
      const { id, control } = checkAdd(args, 'member-add');
      await done(context, { t: 'server-add', id, raftId: 0, control });
      return {};
    }
    case 'member-remove':
      await remove(context, checkId(args, 'member-remove').id);
      return {};
    case 'drain':
      await done(context, { t: 'server-drain', ...checkDrain(args, 'drain') });
      return {};
    case 'shard-move': {
      const { shard, to } = checkMove(args, 'shard-move');
      await move(context, shard, to);
      return {};
    }
    case 'shard-plan':
      return await plan(context);
    default:
      return undefined;
  }
}
