/**
 * The simulated world: members, the network between them, time, and what goes wrong. One seed makes one history.
 *
 * A step is a delivered message, a finished disk write, a crash or a clock jump; ticks, starts and the workload's
 * requests do not count.
 */
import { bootstrapState, checkRaftMessage, type Configuration, type RaftMessage } from '../../core/raft/index.js';
import { Random } from '../support/random.js';
import { Checker, Violation } from './checker.js';
import { EventQueue, type Timed } from './event-queue.js';
import { newCounters } from './counters.js';
import { Disturbances } from './disturbances.js';
import { drawFaults, type Faults } from './faults.js';
import { Links } from './links.js';
import { hashChain, type Application } from './machine.js';
import { SimMember } from './member.js';
import type { OwnerMessage } from './owner-life.js';
import { Owners } from './owners.js';
import type { Trace } from './trace.js';
import { Workload } from './workload.js';

const TICK_US = 10_000;
/** With everything healed, a group must agree again within this time. */
const CALM_LIMIT_US = 60_000_000;
const OWNER_DELAY_US = 400_000;
/** Messages on their way; more are dropped, as queues of sockets do. */
const NETWORK_MAX = 20_000;

type Event = Timed & {
  kind: 'message' | 'owner' | 'tick' | 'io' | 'restart' | 'resume' | 'room' | 'disturb' | 'work' | 'gone';
  member: number;
  life: number;
  message: RaftMessage | undefined;
  owner?: OwnerMessage;
  /** Who ended. */
  ended?: number;
};

export interface WorldOptions {
  readonly seed: number;
  readonly application?: Application;
  readonly trace?: Trace;
  readonly faults?: Partial<Faults>;
}

export class World {
  readonly seed: number;
  readonly random: Random;
  readonly faults: Faults;
  readonly application: Application;
  readonly trace: Trace | undefined;
  readonly checker: Checker;
  readonly members = new Map<number, SimMember>();
  readonly workload: Workload;
  readonly owners: Owners | undefined;
  /** Members whose disks were damaged behind their backs. */
  readonly damaged = new Set<number>();
  readonly counters = newCounters();
  now = 0;
  steps = 0;
  starts = 0;
  readonly #events = new EventQueue<Event>();
  readonly links = new Links();
  readonly #disturbances = new Disturbances(this);
  /** Until then some disk writes are slow. */
  slowUntil = 0;
  /** Nothing goes wrong: the time in which the group must come to agree. */
  #calm = false;

  constructor(options: WorldOptions) {
    this.seed = options.seed;
    this.random = new Random(options.seed);
    this.faults = { ...drawFaults(this.random), ...options.faults };
    this.application = options.application ?? hashChain;
    this.trace = options.trace;
    this.trace?.clock(() => this.now);
    const reference = this.application.machine();
    this.checker = new Checker(reference, (id) => this.members.get(id)!.model);
    const voters = Array.from({ length: this.faults.firstVoters }, (_, i) => i + 1);
    this.workload = new Workload(this, voters.length + 1);
    this.owners =
      this.application.owners === undefined
        ? undefined
        : new Owners(
            this,
            this.application.owners.mistake,
            voters,
            this.application.owners.replicated === true ? reference : undefined,
          );
    this.checker.bootstrapped(bootstrapState(voters).entries);
    for (const id of voters) this.addMember(id, voters);
    this.schedule('disturb', 0, this.around(this.faults.disturbEveryUs));
    this.schedule('work', 0, this.around(this.faults.workEveryUs));
  }

  /** Runs until so many steps are done, with a calm at the end. Throws Violation. */
  run(steps: number): void {
    while (this.steps < steps) this.#next();
    this.calm();
  }

  /** Everything is healed; the group must agree on something new, and all its members must have it, in bounded time. */
  calm(): void {
    this.trace?.note('calm: everything is healed');
    this.#calm = true;
    this.links.heal();
    this.slowUntil = 0;
    for (const member of this.members.values()) {
      member.disk.full = false;
      member.disk.failSync = false;
      member.disk.crashIn = 0;
      member.dieIn = 0;
      if (member.node === undefined && !member.lost) this.schedule('restart', member.id, 1);
      if (member.paused) member.resume();
    }
    const deadline = this.now + CALM_LIMIT_US;
    const goal = this.workload.goal();
    while (!goal()) {
      if (this.now > deadline)
        throw new Violation(
          'liveness',
          `the group did not agree on anything new in ${CALM_LIMIT_US / 1_000_000} s without faults`,
        );
      this.#next();
    }
    this.#calm = false;
  }

  /** From now on nothing goes wrong of itself. */
  quiet(): void {
    this.#calm = true;
  }

  /** Runs until the condition holds, and for so long at the most. */
  runUntil(condition: () => boolean, us: number): void {
    const end = this.now + us;
    while (this.now < end && !condition()) this.#next();
  }

  get forgetLate(): boolean {
    return this.#calm;
  }

  /** A member stands still and hears of nothing, also when it goes on: what it believes is old then. */
  setAside(member: SimMember): void {
    this.trace?.note(`${member.id} stands still, cut off`);
    const ids = [...this.members.keys()];
    this.links.partition(ids, new Set([member.id]));
    member.pause();
    this.schedule('resume', member.id, this.around(800_000));
  }

  /**
   * Members of one host, or of hosts that are suspended together: they stand still and go on together. Their clocks do
   * not stop.
   */
  suspend(members: readonly SimMember[], us: number): void {
    for (const member of members.filter((m) => m.node !== undefined && !m.paused)) {
      this.trace?.note(`${member.id} stands still, with its host`);
      member.pause();
      this.schedule('resume', member.id, us + this.random.below(3000));
    }
  }

  // ---------------------------------------------------------------- members

  addMember(id: number, bootstrap: readonly number[] | undefined): void {
    const member = new SimMember(id, this, bootstrap);
    this.members.set(id, member);
    this.#start(member);
  }

  retire(member: SimMember): void {
    if (member.node !== undefined) member.crash(false);
    this.members.delete(member.id);
    this.trace?.note(`${member.id} is switched off for good`);
  }

  memberStopped(member: SimMember): void {
    this.checker.memberStopped(member.id);
  }

  /** Ends a member and has it come back. */
  crashed(member: SimMember, machine: boolean): void {
    const stopsMachine = machine || this.random.below(2) === 0;
    this.steps++;
    this.counters.crashes++;
    if (stopsMachine) this.counters.machineCrashes++;
    this.trace?.note(`${member.id} crashes${stopsMachine ? ', and loses what was not synced' : ''}`);
    member.crash(stopsMachine);
    this.#hintEnd(member);
    this.schedule('restart', member.id, this.around(this.random.pick([1_000, 10_000, 50_000, 400_000])));
  }

  /** Some of the others find soon that nobody listens there any more. */
  #hintEnd(ended: SimMember): void {
    if (this.faults.weights['leader-gone'] === 0) return;
    for (const { id } of this.members.values())
      if (this.random.below(2) === 0) this.schedule('gone', id, this.around(2000), ended.id);
  }

  #start(member: SimMember): void {
    if (member.node !== undefined || member.lost) return;
    // Recovery is cut short too.
    if (
      this.starts > this.faults.firstVoters &&
      !this.#calm &&
      this.faults.weights['crash-in-disk'] > 0 &&
      this.random.below(4) === 0
    ) {
      member.disk.crashIn = 1 + this.random.below(8);
    }
    const started = member.start();
    if (started === 'refused') {
      this.trace?.note(`${member.id} is refused its damaged disk, for good`);
      return;
    }
    if (started === 'failed') {
      this.trace?.note(`${member.id} fails to start`);
      // Of a machine only where no bit was turned: see #rot.
      member.crash(!this.damaged.has(member.id));
      this.schedule('restart', member.id, this.around(50_000));
      return;
    }
    this.trace?.note(`${member.id} starts: ${member.model.describe()}`);
    this.schedule('tick', member.id, this.#tickUs(member.id));
    member.pump();
  }

  /** Every configuration that anybody can still lead with: older ones than the newest committed win no election. */
  possibleConfigs(): Configuration[] {
    const { committedConfig, committedConfigIndex } = this.checker;
    return [
      committedConfig,
      ...[...this.members.values()].flatMap((member) => member.configsAfter(committedConfigIndex)),
    ];
  }

  /** Whether a configuration has a majority, or both, without the dead. */
  survivable(config: Configuration, dead: (id: number) => boolean): boolean {
    return [config.voters, config.outgoing].every(
      (half) => half.length === 0 || 2 * half.filter((id) => !dead(id)).length > half.length,
    );
  }

  // ---------------------------------------------------------------- network and disk

  send(message: RaftMessage): void {
    const { random, faults, counters } = this;
    counters.messages++;
    if (this.#events.size > NETWORK_MAX) return;
    if ((counters.messages & 15) === 0) {
      const checked = checkRaftMessage(message);
      if (!checked.ok)
        throw new Violation('messages', `${message.type} from ${message.from} would be refused: ${checked.why}`);
    }
    if (!this.#calm) {
      if (random.below(1000) < faults.drop) {
        counters.dropped++;
        return;
      }
      if (random.below(1000) < faults.duplicate) {
        counters.duplicated++;
        this.#deliverLater(message);
      }
    }
    this.#deliverLater(message);
  }

  /** Between owners and leaders (owners.ts): over the same links, lost and late as the rest. */
  sendOwner(owner: OwnerMessage): void {
    const { random, faults } = this;
    if (!this.#calm && random.below(1000) < faults.drop) return;
    // Late by more than a lease now and then: an answer must not count for longer because of it.
    const late = !this.#calm && random.below(30) === 0 ? random.below(OWNER_DELAY_US) : 0;
    this.#events.push({
      at: this.now + 1 + random.below(2 * faults.baseDelayUs) + late,
      order: 0,
      kind: 'owner',
      member: owner.to,
      life: 0,
      message: undefined,
      owner,
    });
  }

  #deliverLater(message: RaftMessage): void {
    const { random, faults } = this;
    let delay = 1 + random.below(2 * faults.baseDelayUs);
    if (!this.#calm && random.below(1000) < faults.longDelay) {
      delay += random.below(faults.longDelayUs);
      this.counters.longDelays++;
    }
    this.#events.push({ at: this.now + delay, order: 0, kind: 'message', member: message.to, life: 0, message });
  }

  scheduleIo(member: SimMember): void {
    const slow = this.now < this.slowUntil && this.random.below(3) === 0;
    if (slow) this.counters.slowWrites++;
    this.schedule('io', member.id, 1 + this.random.below(slow ? this.faults.slowDiskUs : 2 * this.faults.diskUs));
  }

  // ---------------------------------------------------------------- events

  #next(): void {
    const event = this.#events.pop()!;
    this.now = event.at;
    const member = this.members.get(event.member);
    switch (event.kind) {
      case 'message':
        this.#arrive(event.message!, member);
        return;
      case 'owner':
        if (!this.links.cut(event.owner!.from, event.owner!.to)) this.owners?.receive(event.owner!);
        return;
      case 'io':
        if (member?.life !== event.life || !member.writing) return;
        this.steps++;
        this.counters.writes++;
        this.trace?.written(member.id);
        member.ioDone();
        return;
      case 'tick':
        if (member?.life !== event.life || member.node === undefined) return;
        this.schedule('tick', member.id, this.#tickUs(member.id));
        member.tick(1);
        return;
      case 'restart':
        if (member !== undefined) this.#start(member);
        return;
      case 'resume':
        if (member?.life === event.life && member.paused) {
          this.trace?.note(`${member.id} goes on`);
          member.resume();
        }
        return;
      case 'gone':
        member?.leaderGone(event.ended!);
        return;
      case 'room':
        if (member !== undefined) member.disk.full = false;
        return;
      case 'disturb':
        this.schedule('disturb', 0, this.around(this.faults.disturbEveryUs));
        if (!this.#calm) this.#disturbances.next();
        return;
      case 'work':
        this.schedule('work', 0, this.around(this.faults.workEveryUs));
        this.workload.work(this.#calm);
    }
  }

  #arrive(message: RaftMessage, member: SimMember | undefined): void {
    if (member === undefined) return;
    if (this.links.cut(message.from, message.to)) {
      this.counters.cutOff++;
      return;
    }
    member.deliver(message);
  }

  // ---------------------------------------------------------------- time

  /** Something that happens to a member later, if it is still in this life of it. */
  schedule(kind: Event['kind'], member: number, delay: number, ended = 0): void {
    this.#events.push({
      at: this.now + delay,
      order: 0,
      kind,
      member,
      life: this.members.get(member)?.life ?? 0,
      message: undefined,
      ended,
    });
  }

  /** From half of `mean` to one and a half. */
  around(mean: number): number {
    return (mean >> 1) + this.random.below(mean + 1);
  }

  /** Each member's clock runs a little differently from the others'. */
  #tickUs(id: number): number {
    const skew = (((id * 2654435761) >>> 0) % (2 * this.faults.skew + 1)) - this.faults.skew;
    return TICK_US + Math.trunc((TICK_US * skew) / 1000);
  }
}
