/** What goes wrong next: draws one disturbance after the other, by the weights of the seed, and does it. */
import { DISTURBANCES, type Disturbance } from './faults.js';
import type { SimMember } from './member.js';
import type { World } from './world.js';

export class Disturbances {
  #last = { steps: 0, us: 0 };

  constructor(private readonly world: World) {}

  /**
   * Not while little happens: a group that only crashes learns nothing. But not never, since what happens may need a
   * healing.
   */
  next(): void {
    const { steps, now, faults } = this.world;
    const due =
      steps - this.#last.steps >= faults.disturbEverySteps || now - this.#last.us > 10 * faults.disturbEveryUs;
    if (!due) return;
    this.#last = { steps, us: now };
    this.#disturb();
  }

  #disturb(): void {
    const { world } = this;
    const { random } = world;
    const kind = this.#drawDisturbance();
    const up = [...world.members.values()].filter((member) => member.node !== undefined);
    if (up.length === 0) return;
    const member = random.pick(up);
    world.trace?.note(`disturbance: ${kind} ${member.id}`);
    switch (kind) {
      case 'crash':
      case 'crash-machine':
        world.crashed(member, kind === 'crash-machine');
        return;
      case 'crash-in-disk':
        member.disk.crashIn = 1 + random.below(12);
        return;
      case 'crash-in-driver':
        member.dieIn = 1 + random.below(8);
        return;
      case 'fail-sync':
        member.disk.failSync = true;
        return;
      case 'disk-full':
        member.disk.full = true;
        world.schedule('room', member.id, world.around(500_000));
        return;
      case 'slow-disk':
        world.slowUntil = world.now + random.below(500_000);
        return;
      case 'rot':
        this.#rot();
        return;
      case 'pause':
        member.pause();
        world.schedule('resume', member.id, world.around(random.pick([20_000, 100_000, 500_000])));
        return;
      case 'clock-jump':
        world.steps++;
        world.counters.clockJumps++;
        member.tick(1 + random.below(40));
        return;
      case 'partition':
        this.#partition();
        return;
      case 'one-way':
        world.links.cutOneWay(member.id, random.pick(up).id);
        world.counters.oneWayCuts++;
        return;
      case 'heal':
        world.links.heal();
        return;
      case 'campaign':
        member.node?.campaign();
        member.pump();
        return;
      case 'transfer':
        world.workload.transfer(member);
        return;
      case 'leader-gone':
        this.#hint(random.below(2) === 0 ? up : [member]);
    }
  }

  #drawDisturbance(): Disturbance {
    const { faults, random } = this.world;
    const { weights } = faults;
    let total = 0;
    for (const kind of DISTURBANCES) total += weights[kind];
    let at = random.below(total);
    for (const kind of DISTURBANCES) {
      at -= weights[kind];
      if (at < 0) return kind;
    }
    return 'heal';
  }

  /** Members take it that their leader has ended. Most often it has not. */
  #hint(members: readonly SimMember[]): void {
    this.world.counters.hints++;
    for (const member of members.filter(({ paused }) => !paused)) {
      member.leaderGone(member.node?.leader ?? 0);
    }
  }

  #partition(): void {
    const { members, random, links, counters } = this.world;
    const ids = [...members.keys()];
    links.partition(ids, new Set(ids.filter(() => random.below(2) === 0)));
    counters.partitions++;
  }

  /** Turns a bit on the disk of a member that is down, if the group can do without that member. */
  #rot(): void {
    const { world } = this;
    const { random } = world;
    const down = [...world.members.values()].filter(
      (member) => member.node === undefined && !member.lost && !world.damaged.has(member.id),
    );
    if (down.length === 0) return;
    const member = random.pick(down);
    const dead = (id: number) => id === member.id || world.damaged.has(id) || !world.members.has(id);
    if (!world.possibleConfigs().every((config) => world.survivable(config, dead))) return;
    const names = member.disk.names().filter((name) => !name.startsWith('lock'));
    // After a crash of the machine the last record may be torn or rotten, and nobody can tell which
    // (server/raft-storage/state-file.ts).
    const targets = member.machineCrashed ? names.filter((n) => !n.startsWith('log-')) : names;
    if (targets.length === 0) return;
    const name = random.pick(targets);
    const size = member.disk.read(name)?.length ?? 0;
    if (size === 0 || !member.disk.rot(name, random.below(size))) return;
    world.damaged.add(member.id);
    world.trace?.note(`a bit of ${member.id}'s ${name} turns over`);
  }
}
