/** Calls of the control plane: their names, who may make them, and what they answer. */
import { FarkvError } from '../core/errors.js';
import { decodeProposal } from '../core/metadata/commands.js';
import { answerAdminCall, answerJoin, type AdminContext } from './admin-calls.js';
import type { Access } from './control/auth.js';
import { checkAddresses } from '../core/metadata/check-state.js';
import { tooEarly } from '../core/metadata/format.js';
import { bytes, record } from '../core/protocol/check.js';
import { COMMAND_LIMITS } from '../core/protocol/index.js';
import type { MetadataDriver } from './metadata/driver.js';
import type { Followed, Peers } from './metadata/peers.js';
import { checkLeaseRequest, type LeaseGrantor } from './metadata/lease-grantor.js';
import { IN_TERM, type LeaderDuties } from './metadata/leader-duties.js';
import { take, type LeaderDriver } from './metadata/submit.js';
import { noSuchCall } from './operator-calls.js';
import { answerReset } from './shard-reset.js';
import { OWN_READINESS, OWN_STATUS } from './http/bounds.js';
import { scrapeStatus, type ScrapeStatus } from './http/scrape-status.js';
import { ownReadiness, type OwnReadiness, type ReadinessParts } from './own-readiness.js';
import { checkNodeStatus, clusterStatus, raftPart, type ClusterStatus, type NodeStatus } from './status.js';
import { checkStatusCall, othersMs, type StatusCall } from './status-call.js';

export interface CallContext extends AdminContext {
  readonly driver: Pick<MetadataDriver, 'leader' | 'leads' | 'confirmLeader'> & LeaderDriver;
  readonly peers: Pick<Peers, 'call' | 'idOf' | 'ids' | 'isAt' | 'servers'>;
  readonly grantor: Pick<LeaseGrantor, 'ask' | 'current'>;
  readonly reset: LeaderDuties['reset'];
  /** Nobody has told this server to end. */
  readonly stays: () => boolean;
  readonly parts: () => ReadinessParts;
  readonly own: () => Promise<
    Pick<
      NodeStatus,
      | 'version'
      | 'processId'
      | 'uptimeMs'
      | 'connections'
      | 'clients'
      | 'frontStalledMs'
      | 'leaseHeld'
      | 'moveErrors'
      | 'heldBack'
      | 'fullCopies'
      | 'movedVotes'
      | 'failovers'
      | 'group'
      | 'leaseLeftMs'
      | 'certificateEndsMs'
      | 'changesRefusedAgoMs'
      | 'dataPlane'
      | 'values'
    >
  >;
}

const checkIsAt = record<{ readonly peer: readonly string[] }>({ peer: checkAddresses });
const checkPropose = record<{ readonly bytes: Uint8Array }>({ bytes: bytes(COMMAND_LIMITS.bytes) });

async function nodeStatus(context: CallContext): Promise<NodeStatus> {
  return { id: context.id, ...raftPart(context.driver.status()), ...(await context.own()) };
}

/** For /metrics: the cluster as this server alone knows it. No other is asked, so the figures are those of this one. */
async function ownStatus(context: CallContext): Promise<ScrapeStatus> {
  return scrapeStatus(statusOf(context, new Map([[context.id, await nodeStatus(context)]])), context.id);
}

function readiness({ driver, peers, id, stays, parts }: CallContext): OwnReadiness {
  const about = { id, ids: peers.ids, leader: peers.idOf(driver.leader), stopping: !stays() };
  return ownReadiness(driver.state, parts(), about);
}

function statusOf({ driver, peers, id }: CallContext, nodes: ReadonlyMap<string, NodeStatus>): ClusterStatus {
  const leader = peers.idOf(driver.leader);
  return clusterStatus(driver.state, nodes, peers.ids, {
    term: driver.status().term,
    answeredBy: id,
    ...(leader === undefined ? {} : { leader }),
  });
}

async function status(context: CallContext, call: StatusCall): Promise<ClusterStatus> {
  const { peers, id } = context;
  const nodes = new Map<string, NodeStatus>([[id, await nodeStatus(context)]]);
  await Promise.all(
    peers.ids.map(async (peer) => {
      if (peer === id) return;
      // Whoever does not answer is shown as unreachable.
      const answer = await peers.call(peer, 'node-status', {}, othersMs(call)).then(
        (value) => checkNodeStatus(value, peer),
        () => undefined,
      );
      if (answer !== undefined) nodes.set(peer, answer);
    }),
  );
  return statusOf(context, nodes);
}

/**
 * A change that another server asks for: it is read here, so that nothing gets into the log that a server would stop
 * at.
 */
function propose({ driver, peers }: CallContext, args: unknown): Record<string, never> {
  const entry = checkPropose(args, 'propose').bytes;
  const { command } = decodeProposal(entry);
  const early = tooEarly(command, driver.state.formatVersion);
  if (early !== undefined) throw early;
  if (IN_TERM.has(command.t)) throw new FarkvError('ERR_UNAUTHORIZED', `${command.t} is proposed by the leader alone`);
  const refusal = driver.leads ? take(driver, entry, command) : 'not-leader';
  if (refusal === undefined) return {};
  if (refusal === 'not-leader') throw noLeader(driver, peers);
  throw new FarkvError('ERR_BUSY', `the leader takes no changes now (${refusal})`);
}

/** Whoever asks this is about to propose, and goes on only when a quorum has confirmed it (metadata/submit.ts). */
async function leads({ driver, peers }: CallContext): Promise<Record<string, never>> {
  if (!driver.leads) throw noLeader(driver, peers);
  await driver.confirmLeader(); // mutation: metadata/asked-unconfirmed
  return {};
}

/** Asked by a server that is told to have lost what it had acknowledged (metadata/driver.ts). */
function follows({ driver, peers }: CallContext): Followed {
  const leader = peers.idOf(driver.leader);
  return { term: driver.status().term, ...(leader === undefined ? {} : { leader }) };
}

/** Asked by a server whose connection has come up: it may have another address than the metadata has. */
function isAt({ peers }: CallContext, from: string, args: unknown): Record<string, never> {
  peers.isAt(from, checkIsAt(args, 'is-at').peer);
  return {};
}

function noLeader(driver: CallContext['driver'], peers: CallContext['peers']): FarkvError {
  return new FarkvError('ERR_NO_LEADER', `the leader is ${peers.idOf(driver.leader) ?? 'not known'}`);
}

/** `from`: the server that calls. Throws a FarkvError for a call that is not known, or not for this role. */
export async function answerCall(
  context: CallContext,
  access: Access,
  method: string,
  args: unknown,
  from?: string,
): Promise<unknown> {
  // It may have been removed since it connected.
  // mutation: control/removed-server-calls
  if (access === 'peer' && from !== undefined && !context.peers.ids.includes(from))
    throw new FarkvError('ERR_UNAUTHORIZED', `${from} is not one of the servers of this cluster any more`);
  if (access === 'joiner') {
    if (method === 'join' && from !== undefined) return await answerJoin(context, from, args);
  } else if (method === 'status') return await status(context, checkStatusCall(args, method));
  // Asked by the thread of clients and operators itself, for /metrics, /readyz and /role: no frame names them.
  else if (method === OWN_STATUS && access === 'monitor') return await ownStatus(context);
  else if (method === OWN_READINESS && access === 'monitor') return readiness(context);
  if (access === 'peer') {
    if (method === 'node-status') return await nodeStatus(context);
    if (method === 'propose') return propose(context, args);
    if (method === 'leads') return await leads(context);
    if (method === 'follows') return follows(context);
    if (method === 'stays') return { stays: context.stays() };
    if (method === 'is-at' && from !== undefined) return isAt(context, from, args);
    if (method === 'lease' && from !== undefined)
      return await context.grantor.ask(from, checkLeaseRequest(args, 'lease'));
  }
  if (method === 'shard-reset' && (access === 'operator' || access === 'peer')) return await answerReset(context, args);
  if (access === 'operator' || (access === 'peer' && method === 'shard-plan')) {
    const answer = await answerAdminCall(context, method, args);
    if (answer !== undefined) return answer;
  }
  throw noSuchCall(access, method);
}
