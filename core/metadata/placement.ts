/**
 * Which member a shard goes to: rendezvous hashing (Thaler and Ravishankar, 1998), so that every server computes the
 * same answer from the members alone and a member more or less moves few shards; with a bound on each member's load (as
 * in Mirrokni, Thorup and Zadimoghaddam, 2018), because few shards would otherwise spread unevenly.
 */
import type { Member, Shard } from './state.js';

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

/** Data-plane workers of a member. */
export function workersOf(member: Member): number {
  return member.fabric.reduce((most, a) => Math.max(most, a.worker + 1), 1);
}

/** New owners for the shards that have none: shard number to member id. Empty when there are no members. */
export function place(shards: readonly Shard[], members: ReadonlyMap<string, Member>): Map<number, string> {
  const placed = new Map<number, string>();
  const ids = [...members.keys()].sort();
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
