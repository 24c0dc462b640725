/**
 * What must hold of copies, checked after each step of the simulation and each entry of the log:
 *
 *   seen values    a record that was answered, or READ under a lease, lies at its place in every copy that is in sync or
 *                  eligible and whose process runs, and has taken effect at every owner that clients rely on
 *   one owner      clients rely on one life of a shard's contents at a time
 *   given up       contents are given up when each process that has them has ended, or as the policy says: by an
 *                  operator, or because nobody who has them holds a lease
 *   removed        when an owner has a whole copy of a durable shard taken away, its own disk has all that was seen
 *   lost           where copies acknowledge before their disks: what was seen is lost only when the process of each whole
 *                  copy has ended in disorder, and none of their disks has it; from some record on, and for ever
 *   config         rises with every change of a copy set or an epoch; a command has an effect in the config only for
 *                  which it was made, and one of them changes the owner
 *   shrinking      only an owner's proposal makes a copy in sync
 */
import type { Command, Proposal } from '../../../core/metadata/commands.js';
import { isMarked, isWhole, policyOf, waitsOnLoss } from '../../../core/metadata/copy-sets.js';
import type { Copy, CopySet, MetadataState } from '../../../core/metadata/state.js';
import { Violation } from '../checker.js';
import type { Rec } from './table.js';

/** Contents of a shard that clients rely on. */
export interface Relied {
  readonly who: string;
  readonly shard: number;
  readonly copy: string;
  readonly committed: readonly Rec[];
}

/** What the check asks the world. */
export interface Processes {
  /** The records of a copy whose process runs. */
  logOf: (shard: number, copy: Copy) => readonly Rec[] | undefined;
  /** The process of the copy does not run, and its disk has it. */
  isOnDisk: (shard: number, copy: Copy) => boolean;
  /** The records of a copy in memory, or on the disk of a process that does not run. */
  recordsOf: (shard: number, copy: Copy) => readonly Rec[];
  /** What is certain to be on the disk of a copy. */
  diskOf: (shard: number, copy: Copy) => readonly Rec[];
  /** What the disk of a copy had when it was lost, if it was. */
  lostDiskOf: (copy: Copy) => readonly Rec[] | undefined;
  /** The process of the copy runs, and holds a lease of the leader. */
  holdsLease: (copy: Copy) => boolean;
  relied: () => Iterable<Relied>;
}

function startsWith(log: readonly Rec[], seen: readonly Rec[]): boolean {
  return log.length >= seen.length && seen.every((rec, i) => rec.number === log[i]?.number);
}

const idsOf = (set: CopySet | undefined, state: Copy['state']): Set<string> =>
  new Set(set?.copies.filter((c) => c.state === state).map((c) => c.id ?? ''));

/** The config for which a command was made, by shard; empty for commands without one. */
function configsNamed(c: Command): Map<number, number> {
  const names =
    c.t === 'copies-add' || c.t === 'copies-removed'
      ? c.copies
      : c.t === 'shards-given' || c.t === 'shards-promoted' || c.t === 'shards-taken'
        ? c.shards
        : c.t === 'copies-in-sync' || c.t === 'copies-keep' || c.t === 'shard-handover' || c.t === 'shard-reset'
          ? [c]
          : [];
  return new Map(names.map((n) => [n.shard, n.config]));
}

export class CopyCheck {
  /** By shard: the contents that count, and what was seen of them. */
  readonly #life: number[];
  readonly #seen: Rec[][];
  /** The life to which a copy belongs. */
  readonly #lifeOf = new Map<string, number>();
  /** shard/config for which the owner has changed. */
  readonly #changes = new Set<string>();
  /** Copies whose process has ended in disorder since they were in sync. */
  readonly #crashed = new Set<string>();
  /** What was seen, and is nowhere. */
  readonly #lost = new Set<number>();
  seenRecords = 0;
  lostRecords = 0;
  givenUp = 0;

  constructor(
    shards: number,
    private readonly world: Processes,
  ) {
    this.#life = Array.from({ length: shards }, () => 0);
    this.#seen = Array.from({ length: shards }, () => []);
  }

  /** An entry has been committed. */
  committed({ command }: Proposal, before: MetadataState, after: MetadataState): void {
    const named = configsNamed(command);
    for (const { shard } of after.shards) {
      const [was, is] = [before.copySets[shard], after.copySets[shard]];
      if (was === undefined || is === undefined) continue;
      const newEpoch = before.shards[shard]?.epoch !== after.shards[shard]?.epoch;
      if (was === is && !newEpoch) continue;
      if (is.config <= was.config) this.#wrong('config', shard, `stays ${was.config} with ${command.t}`);
      const config = named.get(shard);
      if (config !== undefined && config !== was.config)
        this.#wrong('config', shard, `${command.t} of config ${config} has an effect in ${was.config}`);
      if (newEpoch && config !== undefined) {
        const key = `${shard}/${config}`;
        if (this.#changes.has(key)) this.#wrong('config', shard, `two owners by config ${config}`);
        this.#changes.add(key);
      }
      if (command.t === 'copies-removed' && command.by !== undefined)
        this.#removed(shard, was, is, before, command.by.owner);
      if (newEpoch) this.#loses(shard, command, was, is, after.shards[shard]?.owner);
      this.#shrinks(shard, command, was, is);
      this.#keeps(shard, command, before, was, is);
    }
  }

  #shrinks(shard: number, command: Command, was: CopySet, is: CopySet): void {
    const [inSync, eligible] = [idsOf(was, 'in-sync'), idsOf(was, 'eligible')];
    const opens = command.t === 'shard-opened' && !was.copies.some(isWhole);
    if (opens) this.#begin(shard, command.incarnation);
    for (const id of idsOf(is, 'in-sync')) {
      if (inSync.has(id)) continue;
      const isHeir = eligible.has(id) && (command.t === 'shards-taken' || command.t === 'shards-given');
      if (command.t === 'copies-in-sync') this.#lifeOf.set(id, this.#life[shard] ?? 0);
      else if (command.t === 'shard-reset') this.#begin(shard, id);
      else if (!isHeir && !opens) this.#wrong('shrinking', shard, `copy ${id} is in sync by ${command.t}`);
    }
  }

  #removed(shard: number, was: CopySet, is: CopySet, state: MetadataState, owner: string): void {
    const stays = new Set(is.copies.filter(isWhole).map((c) => c.id));
    const own = was.copies.find((c) => c.member === owner && isWhole(c));
    const isGone = was.copies.some((c) => isWhole(c) && !stays.has(c.id));
    if (!isGone || own === undefined || policyOf(state, shard).level !== 'durable') return;
    // A disk that is lost while the proposal is under way had it.
    if (!startsWith(this.world.lostDiskOf(own) ?? this.world.diskOf(shard, own), this.#seen[shard] ?? []))
      this.#wrong('removed', shard, `what was seen is not on the disk of ${owner}`);
  }

  crashed(copy: string): void {
    this.#crashed.add(copy);
  }

  /** A marked copy leads. */
  #loses(shard: number, command: Command, was: CopySet, is: CopySet, owner: string | undefined): void {
    const id = is.copies.find((c) => c.member === owner && isWhole(c))?.id;
    const back = command.t === 'member-join' ? command.recovered : undefined;
    const isBack = back?.some((c) => c.shard === shard && c.copy === id && c.early === true) === true;
    const heir = was.copies.find((c) => c.id === id && (isBack || isMarked(c)));
    const seen = this.#seen[shard];
    if (heir === undefined || seen === undefined) return;
    const has = (copy: Copy, log = this.world.recordsOf(shard, copy)): number => {
      const at = seen.findIndex((rec, i) => rec.number !== log[i]?.number);
      return at < 0 ? seen.length : at;
    };
    // That its disk is lost by now is another fault: it was the longest when it was chosen.
    const kept = has(heir, this.world.lostDiskOf(heir));
    for (const copy of was.copies.filter(isWhole)) {
      if (kept < seen.length && !this.#crashed.has(copy.id ?? ''))
        this.#wrong('lost', shard, `copy ${copy.id ?? ''} never crashed, and ${heir.id ?? ''} leads with less`);
      if (has(copy) > kept)
        this.#wrong('lost', shard, `copy ${copy.id ?? ''} has more than ${heir.id ?? ''}, which leads`);
    }
    for (const copy of is.copies) this.#crashed.delete(copy.id ?? '');
    this.lostRecords += seen.length - kept;
    for (const { number } of seen.splice(kept)) this.#lost.add(number);
  }

  #begin(shard: number, copy: string): void {
    const life = (this.#life[shard] ?? 0) + 1;
    this.#life[shard] = life;
    this.#seen[shard] = [];
    this.#lifeOf.set(copy, life);
  }

  /** Were all contents given up with that, and might they be? */
  #keeps(shard: number, command: Command, before: MetadataState, was: CopySet, is: CopySet): void {
    const whole = was.copies.filter(isWhole);
    const livesOf = (copies: readonly Copy[]): unknown[] => copies.map((c) => this.#lifeOf.get(c.id ?? '') ?? c.id);
    const stay = new Set(livesOf(is.copies.filter(isWhole)));
    if (whole.length === 0 || livesOf(whole).some((life) => stay.has(life))) return;
    this.givenUp++;
    const policy = policyOf(before, shard);
    for (const copy of whole) {
      // An operator may believe that a disk is lost.
      const mayCome = command.t !== 'shard-reset' && this.world.isOnDisk(shard, copy);
      if (this.world.logOf(shard, copy) === undefined && !mayCome) continue;
      if (command.t === 'shard-reset' && waitsOnLoss(policy))
        this.#wrong('given up', shard, `reset while copy ${copy.id ?? ''} is there`);
      if (policy.level !== 'cache' && policy.onLoss === 'wait')
        this.#wrong('given up', shard, `${command.t} gives up copy ${copy.id ?? ''}, which is there`);
      if (this.world.holdsLease(copy)) this.#wrong('given up', shard, `copy ${copy.id ?? ''} is of a living server`);
    }
  }

  /** After each step, with the state after all entries. */
  stepped(state: MetadataState): void {
    for (let i = 0; i < 2; i++)
      for (const one of this.world.relied()) this.#extend(one, state.shards[one.shard]?.owner);
    state.copySets.forEach((set, shard) => {
      const seen = this.#seen[shard] ?? [];
      for (const copy of set.copies) {
        if (isWhole(copy) && copy.id === undefined) this.#wrong('seen values', shard, `no table is ${copy.state}`);
        if (!isWhole(copy) || isMarked(copy) || this.#lifeOf.get(copy.id ?? '') !== this.#life[shard]) continue;
        const log = this.world.logOf(shard, copy);
        if (log !== undefined && !startsWith(log, seen))
          this.#wrong('seen values', shard, `copy ${copy.id ?? ''} of ${copy.member} is ${copy.state} and lacks some`);
      }
    });
  }

  #extend({ who, shard, copy, committed: all }: Relied, owner: string | undefined): void {
    const seen = this.#seen[shard] ?? [];
    const life = this.#lifeOf.get(copy) ?? 0;
    if (life !== this.#life[shard]) {
      // Clients may go on reading what was given up until somebody serves what came in its place.
      if (seen.length > 0) this.#wrong('one owner', shard, `${who} is relied on for contents of the past`);
      return;
    }
    // Until leases of before are over, clients may READ what is lost by now.
    const at = who === owner ? -1 : all.findIndex((rec) => this.#lost.has(rec.number));
    const committed = at < 0 ? all : all.slice(0, at);
    if (!startsWith(committed, seen)) this.#wrong('seen values', shard, `${who} is relied on and lacks some`);
    this.seenRecords += committed.length - seen.length;
    for (const rec of committed.slice(seen.length)) {
      if (this.#lost.has(rec.number)) this.#wrong('lost', shard, `${who} has what was lost`);
      seen.push(rec);
    }
  }

  #wrong(invariant: string, shard: number, what: string): never {
    throw new Violation(invariant, `shard ${shard}: ${what}`);
  }
}
