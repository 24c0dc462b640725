/**
 * Which member a shard goes to: rendezvous hashing (Thaler and Ravishankar, 1998), so that every server computes the
 * same answer from the members alone and a member more or less moves few shards; with a bound on each member's load (as
 * in Mirrokni, Thorup and Zadimoghaddam, 2018), because few shards would otherwise spread unevenly.
 */
import type { Member, MetadataState } from './state.js';

function mix(h: number): number {
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}

/** FNV-1a. */
export function hashText(text: string, seed = 0x811c9dc5): number {
  let h = seed;
  for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), 0x01000193);
  return h >>> 0;
}

export function score(shard: number, member: string): number {
  return mix(hashText(member) ^ mix(shard + 0x9e3779b9));
}

/**
 * A Raft node number for a member id: 52 bits of two hashes, never 0. Two ids of one cluster with the same number are
 * found when the list of peers is read.
 */
export function raftIdOf(id: string): number {
  return (mix(hashText(id, 0x5bd1e995)) % 2 ** 20) * 2 ** 32 + mix(hashText(id)) + 1;
}

/** It votes, and keeps no values: no shard and no copy may come to it. */
export function isWitness({ memoryBytes }: Pick<Member, 'memoryBytes'>): boolean {
  return memoryBytes === 0;
}

/** Members that may have shards and copies. */
export function keepersOf({ members }: Pick<MetadataState, 'members'>): Member[] {
  return [...members.values()].filter((m) => !isWitness(m));
}

/** Servers of the cluster that keep values, or may: who has not joined yet has not said that it is a witness. */
export function keepersExpected({
  members,
  servers,
  voters,
}: Pick<MetadataState, 'members' | 'servers' | 'voters'>): number {
  const ids = [...new Set([...servers.map(({ id }) => id), ...voters])];
  return ids.filter((id) => members.get(id)?.memoryBytes !== 0).length;
}

/** Undefined: `id` is a member that may have shards and copies. */
export function whyNoKeeper({ members }: Pick<MetadataState, 'members'>, id: string): string | undefined {
  const member = members.get(id);
  if (member === undefined) return `${id} has not joined the cluster`;
  return isWitness(member) ? `${id} is a witness: it votes, and keeps no values` : undefined;
}

/**
 * What the table of a shard's owner may register at most, in bytes: the memory of all servers by the number of shards,
 * wherever it is. A limit, not a share: what all tables of a server take together its own --memory bounds. So it rises
 * where a server joins.
 */
export function tableMemory({ members, shards }: Pick<MetadataState, 'members' | 'shards'>): number {
  let all = 0;
  for (const { memoryBytes } of members.values()) all += memoryBytes;
  return Math.min(Number.MAX_SAFE_INTEGER, Math.floor(all / Math.max(1, shards.length)));
}

/** Data-plane workers of a member. */
export function workersOf(member: Member): number {
  return member.fabric.reduce((most, a) => Math.max(most, a.worker + 1), 1);
}

/** New owners for the shards that have none: shard number to member id. Empty when no member keeps values. */
export function place(state: Pick<MetadataState, 'shards' | 'members'>): Map<number, string> {
  const { shards } = state;
  const placed = new Map<number, string>();
  const ids = keepersOf(state)
    .map((m) => m.id)
    .sort();
  if (ids.length === 0) return placed;
  const most = Math.ceil(shards.length / ids.length);
  const load = new Map<string, number>(ids.map((id) => [id, 0]));
  for (const s of shards) if (s.owner !== undefined) load.set(s.owner, (load.get(s.owner) ?? 0) + 1);
  for (const s of shards) {
    if (s.owner !== undefined) continue;
    let best: string | undefined;
    for (const id of ids) {
      if ((load.get(id) ?? 0) >= most) continue;
      if (best === undefined || score(s.shard, id) > score(s.shard, best)) best = id;
    }
    if (best === undefined) continue;
    placed.set(s.shard, best);
    load.set(best, (load.get(best) ?? 0) + 1);
  }
  return placed;
}
