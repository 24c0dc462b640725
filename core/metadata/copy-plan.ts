/**
 * Which members have the copies of a shard: rendezvous hashing with weights, as for owners (plan.ts), so that a member
 * more or less changes few copies; but first in zones that have none. Decided by the leader, which writes the result
 * into a command.
 */
import { policyOf } from './copy-sets.js';
import { parts, weighted } from './plan.js';
import type { Member, MetadataState } from './state.js';

/** What fails together with the member: its zone where it has a label, else its host. */
export function zoneOf({ zone, fabric, control, id }: Member): string {
  if (zone !== undefined) return `zone ${zone}`;
  const host = fabric.find((a) => a.host !== undefined)?.host ?? control[0]?.replace(/:\d+$/, '');
  return host === undefined ? `member ${id}` : `host ${host}`;
}

/** How many copies each member may have: its part, by weight, of all that policies ask for, rounded up. */
export function copyBounds(state: MetadataState, members: readonly Member[]): Map<string, number> {
  const wanted = state.shards.reduce((sum, s) => sum + policyOf(state, s.shard).replicas, 0);
  return new Map([...parts(wanted, members)].map(([id, part]) => [id, Math.ceil(part - 1e-6)]));
}

/**
 * Members for `count` more copies of a shard, best first: in zones with the fewest copies; of those, members with room;
 * of those, the one that hashing likes best. `present`: members with a copy.
 */
export function placeCopies(
  shard: number,
  present: readonly Member[],
  candidates: readonly Member[],
  count: number,
  hasRoom: (id: string) => boolean = () => true,
): Member[] {
  const copies = new Map<string, number>();
  const note = (m: Member): unknown => copies.set(zoneOf(m), (copies.get(zoneOf(m)) ?? 0) + 1);
  present.forEach(note);
  const chosen: Member[] = [];
  const open = candidates.filter((m) => !present.includes(m));
  const order = (a: Member, b: Member): number =>
    (copies.get(zoneOf(a)) ?? 0) - (copies.get(zoneOf(b)) ?? 0) ||
    Number(hasRoom(b.id)) - Number(hasRoom(a.id)) ||
    weighted(shard, b) - weighted(shard, a) ||
    (a.id < b.id ? -1 : 1);
  while (chosen.length < count && open.length > 0) {
    const next = open.sort(order).shift();
    if (next === undefined) break;
    chosen.push(next);
    note(next);
  }
  return chosen;
}
