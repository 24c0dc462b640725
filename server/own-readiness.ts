/**
 * What a server's own probes need to know (/readyz, /role): its role, its lease, and which shards are not as they should
 * be. Anybody may ask for these without a token, so they are made of the metadata and of what the thread of Raft has at
 * hand: one pass over the shards, no look at the disk, no figures per shard, and seldom a question to the data plane. Not for:
 * /metrics, which has the whole status and wants a token (status.ts).
 */
import { inSync, policyOf } from '../core/metadata/copy-sets.js';
import { isWitness } from '../core/metadata/placement.js';
import type { MetadataState } from '../core/metadata/state.js';
import { tenantRanges } from '../core/metadata/tenants.js';
import { unansweredMs } from './answer-watch.js';

export interface OwnReadiness {
  /** In the metadata group. starting: there is no cluster yet, or it is no server of it. candidate: it has a vote, and nobody leads. */
  readonly role: 'starting' | 'leader' | 'follower' | 'candidate' | 'learner';
  readonly hasLeader: boolean;
  readonly stopping: boolean;
  /** While a start reads its values from the disk. */
  readonly recovering?: { readonly bytes: number; readonly all: number };
  readonly leaseHeld: boolean;
  /** For so long a thread of the data plane has not answered. */
  readonly dataPlaneSilentMs: number;
  /** Shards that it owns and does not serve. */
  readonly waiting: readonly number[];
  /** Shards of the cluster with fewer copies in sync than they are to have, or than there are servers for. */
  readonly lacking: readonly number[];
}

/** Parts of a server that is running; a start makes them one after the other, and a witness has fewer. */
export interface ReadinessParts {
  readonly lease: { readonly held: boolean } | undefined;
  readonly values: { readonly watch: { readonly recovering: OwnReadiness['recovering'] | undefined } } | undefined;
  readonly shards: { readonly serving: readonly number[] } | undefined;
  readonly dataPlane: { stats(): Promise<unknown> } | undefined;
}

export interface ReadinessAbout {
  readonly id: string;
  /** Ids of the servers, as far as they are known before the metadata names them. */
  readonly ids: readonly string[];
  /** Undefined: none is known. */
  readonly leader: string | undefined;
  readonly stopping: boolean;
}

export function ownReadiness(
  state: MetadataState,
  { lease, values, shards, dataPlane }: ReadinessParts,
  { id, ids, leader, stopping }: ReadinessAbout,
): OwnReadiness {
  const announced = state.servers.filter(({ raftId }) => raftId === 0).map((server) => server.id);
  const all = new Set([...ids, ...announced]);
  const isKnown = state.voters.length > 0 && all.has(id);
  const votes = state.voters.includes(id) && !announced.includes(id);
  const recovering = values?.watch.recovering;
  const serving = new Set(shards?.serving ?? []);
  return {
    role: !isKnown
      ? 'starting'
      : leader === id
        ? 'leader'
        : !votes
          ? 'learner'
          : leader === undefined
            ? 'candidate'
            : 'follower',
    hasLeader: leader !== undefined,
    stopping,
    ...(recovering === undefined ? {} : { recovering }),
    leaseHeld: lease?.held === true,
    dataPlaneSilentMs: dataPlane === undefined ? 0 : Math.round(unansweredMs(dataPlane)),
    waiting: state.shards.filter(({ shard, owner }) => owner === id && !serving.has(shard)).map(({ shard }) => shard),
    lacking: lacking(state, keepers(state, all, id)),
  };
}

/** Servers that may have copies: they have joined, keep values, and are not drained. */
function keepers({ members, servers }: MetadataState, all: ReadonlySet<string>, own: string): number {
  const drained = new Set(servers.filter(({ draining }) => draining).map(({ id }) => id));
  return [...all].filter((id) => {
    const member = members.get(id);
    return member === undefined ? id === own : !isWitness(member) && !drained.has(id);
  }).length;
}

function lacking(state: MetadataState, servers: number): number[] {
  return tenantRanges(state).flatMap(({ first, count }) => {
    const { level, replicas } = policyOf(state, first);
    return state.shards.slice(first, first + count).flatMap(({ shard }) => {
      const copies = state.copySets[shard]?.copies;
      if (copies === undefined || (level === 'cache' && copies.length <= 1)) return [];
      return inSync(copies) < Math.min(replicas, servers) ? [shard] : [];
    });
  });
}
