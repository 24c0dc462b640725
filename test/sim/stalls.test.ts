/**
 * A leader that stands still for short times, again and again, gives the shards of a dead owner to others in bounded
 * time. The rest of a history with faults shows that it takes from no others (fairness.ts).
 */
import test from 'ava';
import { MetadataModel, ownersApplication } from './metadata-application.js';
import type { SimMember } from './member.js';
import { World } from './world.js';

const LEASE_US = 200_000;
/** A quarter of a lease in every one and a quarter, as 200 ms in each second for a lease of 800 ms. */
const STALL_US = 50_000;
const EVERY_US = 250_000;

function calmWorld(seed: number): World {
  const none = {
    crash: 0,
    'crash-machine': 0,
    'crash-in-disk': 0,
    'crash-in-driver': 0,
    'fail-sync': 0,
    'disk-full': 0,
    'slow-disk': 0,
    rot: 0,
    pause: 0,
    'clock-jump': 0,
    partition: 0,
    'one-way': 0,
    heal: 1,
    campaign: 0,
    transfer: 0,
    'leader-gone': 0,
  };
  return new World({
    seed,
    application: ownersApplication(),
    faults: {
      drop: 0,
      duplicate: 0,
      longDelay: 0,
      baseDelayUs: 300,
      diskUs: 50,
      weights: none,
      workEveryUs: 20_000,
      changePermille: 0,
      firstVoters: 3,
      stepsDuringWrites: false,
      skew: 0,
    },
  });
}

/** How many shards this owner has, by this member's metadata; undefined while some have no owner. */
function shardsOf(member: SimMember, owner: SimMember): number | undefined {
  const { machine } = member;
  if (
    !(machine instanceof MetadataModel) ||
    machine.state.shards.length === 0 ||
    machine.state.shards.some((s) => s.incarnation === undefined)
  )
    return undefined;
  return machine.state.shards.filter((s) => s.owner === `m${owner.id}`).length;
}

test('a dead owner is replaced within three leases by a leader that stands still for a quarter of a lease in every one and a quarter', (t) => {
  for (let seed = 1; seed <= 20; seed++) {
    const world = calmWorld(seed);
    const members = [...world.members.values()];
    const leader = (): SimMember | undefined => members.find((m) => m.node?.role === 'leader');
    world.quiet();
    world.runUntil(() => leader() !== undefined && members.every((m) => shardsOf(leader()!, m) === 2), 20_000_000);
    const leads = leader()!;
    const dead = members.find((m) => m !== leads)!;
    t.is(shardsOf(leads, dead), 2);
    // Whenever in a lease it is.
    world.runUntil(() => false, world.random.below(LEASE_US));
    dead.crash(false);
    const at = world.now;
    const replaced = (): boolean => shardsOf(leads, dead) === 0;
    while (!replaced() && world.now - at < 20 * LEASE_US) {
      const next = world.now + EVERY_US;
      leads.pause();
      world.runUntil(() => false, STALL_US);
      leads.resume();
      world.runUntil(replaced, next - world.now);
    }
    const took = world.now - at;
    t.true(took <= 3 * LEASE_US, `seed ${seed}: ${took / 1000} ms`);
  }
});
