/**
 * What operators and joining servers ask for: changes of who belongs to the cluster and which server owns which shard.
 * Each is a command of the metadata, proposed by whichever server was asked; an answer means that this server has
 * applied it.
 */
import { createHash, randomBytes } from 'node:crypto';
import { FarkvError } from '../core/errors.js';
import { memberId, SHARDS_MAX, shardNumber } from '../core/metadata/check-state.js';
import { isKnown } from '../core/metadata/join-tokens.js';
import type { Command } from '../core/metadata/commands.js';
import { usable } from '../core/metadata/leader-policy.js';
import { raftIdOf } from '../core/metadata/placement.js';
import { planCopiesIn } from '../core/metadata/plan-copies.js';
import { planRebalance, type PlannedMove } from '../core/metadata/plan.js';
import { tenantNumber } from '../core/metadata/tenants.js';
import { KEPT_MS, REVOKED_AHEAD_MS, ticketRules } from '../core/metadata/tickets.js';
import { list, maybe, record } from '../core/protocol/check.js';
import { TICKET_MS } from './control/tickets.js';
import type { MetadataDriver } from './metadata/driver.js';
import { noLeader } from './metadata/no-leader.js';
import { checkJoinRequest, type JoinAnswer } from './metadata/join.js';
import type { LeaseGrantor } from './metadata/lease-grantor.js';
import type { Peers } from './metadata/peers.js';
import type { Outcome } from './metadata/proposer.js';
import { argumentsOf, type MoveAsked, type PolicyAsked, type Revoked } from './operator-calls.js';

export interface AdminContext {
  readonly id: string;
  readonly driver: Pick<MetadataDriver, 'state' | 'leader' | 'leads'>;
  readonly peers: Pick<Peers, 'call' | 'idOf' | 'servers'>;
  readonly grantor: Pick<LeaseGrantor, 'current'>;
  readonly propose: (command: Command, timeoutMs: number) => Promise<Outcome>;
  /** Milliseconds of CLOCK_BOOTTIME. */
  readonly nowMs: () => number;
  /** The latest that this server's wall clock has shown (latest-wall.ts). */
  readonly latestWallMs: () => number;
  /** A server that comes must show a join token. */
  readonly joinTokens: boolean;
  /** Whether one more join token that this server does not know may become an entry of the log now. */
  readonly mayGuess: () => boolean;
}

const PROPOSE_MS = 4000;
const CALL_MS = 4000;

export const checkPlan = list(
  record<PlannedMove>({ shard: shardNumber, from: memberId, to: memberId, gives: maybe(memberId) }),
  SHARDS_MAX,
);

/** Throws ERR_NO_LEADER where that is why nobody took it: a longer time would not help. */
async function propose({ driver, peers, propose: give }: AdminContext, command: Command): Promise<Outcome> {
  try {
    return await give(command, PROPOSE_MS);
  } catch (error) {
    const isLate = error instanceof FarkvError && error.code === 'ERR_TIMEOUT';
    throw isLate && peers.idOf(driver.leader) === undefined ? noLeader({ cause: error }) : error;
  }
}

async function done(context: AdminContext, command: Command): Promise<void> {
  const outcome = await propose(context, command);
  if (outcome === 'unknown')
    throw new FarkvError(
      'ERR_BUSY',
      'the metadata changed meanwhile: check farkv status, and repeat the command if needed',
    );
  if (!outcome.ok) throw new FarkvError(outcome.code, outcome.message);
}

const hashOf = (token: string): string => createHash('sha256').update(token, 'utf8').digest('hex');

/** A server asks for its place. It is told who the servers are, itself among them. */
export async function answerJoin(context: AdminContext, id: string, args: unknown): Promise<JoinAnswer> {
  const { instance, control, peer, token } = checkJoinRequest(args, 'join');
  const there = (): boolean => context.driver.state.servers.some((s) => s.id === id && s.instance === instance);
  if (context.driver.state.clusterId === '') throw new FarkvError('ERR_NO_LEADER', 'the cluster is not made yet');
  if (!there()) {
    // mutation: access/join-without-token
    if (context.joinTokens && token === undefined)
      throw new FarkvError(
        'ERR_UNAUTHORIZED',
        'a server that joins shows a join token: make one with farkv join-token create, and start it with --join-token-file',
      );
    const shown = token === undefined ? {} : { token: hashOf(token), atMs: Date.now() };
    const { state } = context.driver;
    if (context.joinTokens && !isKnown(state, shown.token ?? '', shown.atMs ?? 0) && !context.mayGuess())
      throw new FarkvError(
        'ERR_BUSY',
        'too many servers have shown join tokens that this server does not know: the next is looked at in a second',
      );
    // The same number as that server's data directory gives (data-directory.ts).
    const raftId = raftIdOf(`${id}/${instance}`);
    const outcome = await propose(context, { t: 'server-add', id, raftId, instance, control, peer, ...shown });
    if (outcome !== 'unknown' && !outcome.ok && !there()) throw new FarkvError(outcome.code, outcome.message);
  }
  if (!there()) throw new FarkvError('ERR_BUSY', 'the metadata has changed meanwhile');
  return { clusterId: context.driver.state.clusterId, servers: context.peers.servers };
}

async function remove(context: AdminContext, id: string): Promise<void> {
  const server = context.driver.state.servers.find((s) => s.id === id);
  if (server === undefined) throw new FarkvError('ERR_CONFIG', `${id} is not one of the servers`);
  try {
    await done(context, { t: 'server-remove', id, raftId: server.raftId });
  } catch (error) {
    // Why the leader did not take it for as long as it was asked (metadata/removal.ts).
    const cause = error instanceof FarkvError && error.code === 'ERR_TIMEOUT' ? error.cause : undefined;
    throw cause instanceof FarkvError && cause.code === 'ERR_BUSY' ? cause : error;
  }
}

async function move(context: AdminContext, { shard, to, epoch }: MoveAsked): Promise<void> {
  const { driver } = context;
  const s = driver.state.shards[shard];
  if (s === undefined)
    throw new FarkvError('ERR_CONFIG', `there is no shard ${shard}; there are ${driver.state.shards.length}`);
  await done(context, { t: 'shard-move', shard, epoch: epoch ?? s.epoch, to });
}

/** Only the leader knows who is alive. */
async function plan(context: AdminContext): Promise<readonly PlannedMove[]> {
  const { driver, peers, grantor, nowMs } = context;
  const { current } = grantor;
  if (current !== undefined) {
    const members = usable(driver.state, current.leases, nowMs());
    const owners = planRebalance(driver.state, members);
    return owners.length > 0 ? owners : planCopiesIn(driver.state, members);
  }
  const leader = peers.idOf(driver.leader);
  if (leader === undefined || driver.leads) throw noLeader();
  return checkPlan(await peers.call(leader, 'shard-plan', {}, CALL_MS), 'plan');
}

async function rotate(context: AdminContext): Promise<void> {
  const number = ticketRules(context.driver.state).number + 1;
  await done(context, { t: 'tickets-rotate', number, secret: randomBytes(16).toString('hex'), atMs: Date.now() });
}

async function setPolicy(context: AdminContext, { tenant: name, ...policy }: PolicyAsked): Promise<void> {
  const tenant = tenantNumber(context.driver.state, name);
  if (tenant === undefined) throw new FarkvError('ERR_CONFIG', `the cluster has no tenant ${name ?? ''}`);
  await done(context, { t: 'policy-set', tenant, ...policy });
}

/**
 * The time that dates a revocation. Clocks of servers differ by REVOKED_AHEAD_MS at most. Claim: tickets made before the
 * revocation end with it, and its entry drops no other revocation (KEPT_MS) whose tickets may still be good.
 * 1. Tickets from before this clock was set back may be dated later than now, but not later than the clock has shown.
 * 2. The entry drops revocations with beforeMs <= atMs - KEPT_MS. With atMs at most `most`, that is TICKET_MS +
 *    REVOKED_AHEAD_MS ago. Their tickets, dated before that, have expired by the clock of every owner.
 * 3. A ticket made after an earlier revocation is dated at its beforeMs or later (control/tickets.ts). A client's id does
 *    not tell its tenant, so the new beforeMs is a millisecond after all others.
 * 4. Case 3 passes `most` only where a wrong clock dated an entry ahead. That entry dropped the same ones when it came.
 */
function revocationMs({ driver, latestWallMs }: AdminContext): number {
  const most = Date.now() + KEPT_MS - TICKET_MS - REVOKED_AHEAD_MS;
  const afterOthers = ticketRules(driver.state).revoked.map((r) => r.beforeMs - REVOKED_AHEAD_MS + 1);
  return Math.max(Math.min(latestWallMs(), most), ...afterOthers);
}

/** By a client's id, or the name of a tenant ('' is the default one). */
async function revoke(context: AdminContext, { client, tenant }: Revoked): Promise<void> {
  const number =
    tenant === undefined ? undefined : tenantNumber(context.driver.state, tenant === '' ? undefined : tenant);
  if (tenant !== undefined && number === undefined)
    throw new FarkvError('ERR_CONFIG', `the cluster has no tenant ${tenant}`);
  await done(context, {
    t: 'tickets-revoke',
    ...(client === undefined ? {} : { client }),
    ...(number === undefined ? {} : { tenant: number }),
    atMs: revocationMs(context),
  });
}

/** Undefined when there is no such call for operators. */
export async function answerAdminCall(context: AdminContext, method: string, args: unknown): Promise<unknown> {
  switch (method) {
    case 'member-add': {
      const { id, control } = argumentsOf('member-add', args);
      await done(context, { t: 'server-add', id, raftId: 0, control });
      return {};
    }
    case 'tickets-rotate':
      await rotate(context);
      return {};
    case 'tickets-revoke':
      await revoke(context, argumentsOf('tickets-revoke', args));
      return {};
    case 'join-token-add': {
      const { hash, ttlMs } = argumentsOf('join-token-add', args);
      const atMs = Date.now();
      await done(context, { t: 'join-token-add', hash, expiresMs: atMs + ttlMs, atMs });
      return {};
    }
    case 'member-remove':
      await remove(context, argumentsOf('member-remove', args).id);
      return {};
    case 'drain':
      await done(context, { t: 'server-drain', ...argumentsOf('drain', args) });
      return {};
    case 'shard-move':
      await move(context, argumentsOf('shard-move', args));
      return {};
    case 'replication-set':
      await setPolicy(context, argumentsOf('replication-set', args));
      return {};
    case 'shard-plan':
      return await plan(context);
    default:
      return undefined;
  }
}
