/**
 * What the metadata's leader does about copies: pure decisions from the metadata, the leases that it has granted, and
 * the time, as leader-policy.ts. Not for: copies in sync that fall silent, which their owner removes.
 */
import type { AddedCopy, CopyCommand, Heir, RemovedCopy } from './copy-commands.js';
import { copyBounds, placeCopies, zoneOf } from './copy-plan.js';
import { heirNamed, isFull, isRenounced, isWhole, mayCome, mayLead, policyOf, waitsOnLoss } from './copy-sets.js';
import { JoinRests } from './join-rests.js';
import type { GrantedLeases } from './owner-leases.js';
import { keepersOf } from './placement.js';
import type { Copy, CopySet, Member, MetadataState, Shard } from './state.js';

/** Copies that are made from one server, and to one server, at a time: each takes memory and bandwidth of both. */
export const JOINS_AT_ONCE = 2;
/** A dead member's copies are made anew elsewhere after this time: it may come back, and be nearer to what it had. */
export const REPLACE_MS = 60_000;
/** After the first copy has come back from its disk, others are waited for so long: one may have a longer log. */
export const RECOVER_MS = 2_000;
/** A copy that joins may be away for so long: then its owner does not know it any more (native/replication/copies.c). */
export const REJOIN_MS = 10_000;
/** A copy that has a name has been copied. If it does not get in sync for so long, though its owner is there, it cannot. */
export const STUCK_MS = 120_000;

/**
 * Since when members are dead, since when shards have copies that came back from disks, and which copies are not begun
 * again for a time, as the present leader has found. Soft state, of which nothing that is safe depends.
 */
export class Absences {
  readonly #since = new Map<string, number>();
  readonly #back = new Map<number, number>();
  /** Copies that have names, and join an owner that is there: by shard and id. */
  readonly #named = new Map<string, number>();
  /** Copies that could not be made. */
  readonly joins = new JoinRests();

  /** To be called before `nextCopies`. */
  observe(state: MetadataState, leases: GrantedLeases, nowMs: number): void {
    for (const id of this.#since.keys()) if (!state.members.has(id)) this.#since.delete(id);
    for (const id of state.members.keys()) {
      if (!leases.dead(id, nowMs)) this.#since.delete(id);
      else if (!this.#since.has(id)) this.#since.set(id, nowMs);
    }
    const named = new Set<string>();
    state.copySets.forEach(({ copies }, shard) => {
      const owner = state.shards[shard]?.owner;
      const isThere = (id: string): boolean => !leases.dead(id, nowMs);
      for (const c of owner !== undefined && isThere(owner) ? copies : []) {
        if (c.state !== 'joining' || c.id === undefined || isRenounced(c)) continue;
        if (c.member !== owner && isThere(c.member)) named.add(keyOf(shard, c));
      }
      if (!copies.some((c) => c.recovered !== undefined && isWhole(c))) this.#back.delete(shard);
      else if (!this.#back.has(shard)) this.#back.set(shard, nowMs);
    });
    for (const key of this.#named.keys()) if (!named.has(key)) this.#named.delete(key);
    for (const key of named) if (!this.#named.has(key)) this.#named.set(key, nowMs);
    this.joins.observe(state, nowMs);
  }

  /** Until when other copies of the shard are waited for. */
  recoveredMs(shard: number): number {
    return (this.#back.get(shard) ?? Infinity) + RECOVER_MS;
  }

  /** It joins for so long that it will not get in sync: its server may not know that the owner is there. */
  isStuck(shard: number, copy: Copy, nowMs: number): boolean {
    return nowMs >= (this.#named.get(keyOf(shard, copy)) ?? Infinity) + STUCK_MS;
  }

  /** It will not have its copies back: they go to others. */
  isReplaced(id: string, nowMs: number): boolean {
    return nowMs >= this.endMs(id, REPLACE_MS);
  }

  /** When it will have been dead for so long; Infinity: it is not dead. */
  endMs(id: string, afterMs: number): number {
    return (this.#since.get(id) ?? Infinity) + afterMs;
  }

  /** For how long it has been found dead, in whole milliseconds; 0: it is not. */
  silentMs(id: string, nowMs: number): number {
    return Math.max(0, Math.round(nowMs - (this.#since.get(id) ?? nowMs)));
  }

  /** When a look at the absences may have another answer. */
  nextEndMs(nowMs: number): number | undefined {
    const ends = [...this.#since.values()]
      .flatMap((at) => [at + REJOIN_MS, at + REPLACE_MS])
      .concat([...this.#back.values()].map((at) => at + RECOVER_MS))
      .concat([...this.#named.values()].map((at) => at + STUCK_MS))
      .concat(this.joins.nextEndMs(nowMs) ?? [])
      .filter((at) => at > nowMs);
    return ends.length === 0 ? undefined : Math.min(...ends);
  }
}

function keyOf(shard: number, { id = '' }: Copy): string {
  return `${shard} ${id}`;
}

/** What one look of the leader sees. */
interface Look {
  readonly state: MetadataState;
  readonly leases: GrantedLeases;
  readonly absences: Absences;
  readonly nowMs: number;
  readonly draining: ReadonlySet<string>;
}

const startOf = (state: MetadataState, id: string): string => state.members.get(id)?.incarnation ?? '';

function isAlive({ leases, nowMs }: Look, id: string): boolean {
  return leases.alive(id, nowMs);
}

/**
 * The copy that becomes the owner's: in sync before eligible; one that was never away before those that came back from
 * disks, and of these the longest log (R-longest); on servers that stay before others, in order of rank. None where a
 * copy that may have more is not back (mayLead).
 */
export function bestHeir(
  state: MetadataState,
  set: CopySet,
  isUsable: (id: string) => boolean,
): (Copy & { readonly id: string }) | undefined {
  const draining = drainingIn(state);
  const cost = (c: Copy): number => (c.state === 'eligible' ? 512 : 0) + (draining.has(c.member) ? 256 : 0) + c.rank;
  return set.copies
    .filter((c): c is Copy & { readonly id: string } => mayCome(state, c) && c.id !== undefined && isUsable(c.member)) // mutation: recovered/absent-given
    .filter((c) => mayLead(set, c)) // mutation: marked/leader-gives-to-marked
    .sort((a, b) => away(a, b) || cost(a) - cost(b) || (a.member < b.member ? -1 : 1))[0];
}

function away(a: Copy, b: Copy): number {
  const [x, y] = [a.recovered, b.recovered];
  const states = Number(a.state === 'eligible') - Number(b.state === 'eligible');
  if (states !== 0 || (x === undefined && y === undefined)) return states;
  if (x === undefined || y === undefined) return x === undefined ? -1 : 1;
  return y.epoch - x.epoch || y.lsn - x.lsn; // mutation: recovered/earlier-epoch-leads
}

/** A copy with a longer log may come back any moment. Any whole one is safe; with that one nothing is copied anew. */
function isAwaited(
  state: MetadataState,
  { copies }: CopySet,
  heir: Copy | undefined,
  isUsable: (id: string) => boolean,
  isOver: boolean,
): boolean {
  return heir?.recovered !== undefined && !isOver && copies.some((c) => mayCome(state, c) && !isUsable(c.member));
}

/** Vacant shards whose last owner nobody relies on any more. */
function heirs(look: Look): Heir[] {
  const { state, leases, absences, nowMs } = look;
  if (nowMs < leases.earlierStartsOverAt()) return [];
  const isUsable = (id: string): boolean => isAlive(look, id);
  return state.shards.flatMap((s): Heir[] => {
    const set = state.copySets[s.shard];
    if (s.owner !== undefined || set === undefined) return [];
    const heir = bestHeir(state, set, isUsable);
    return heir === undefined || isAwaited(state, set, heir, isUsable, nowMs >= absences.recoveredMs(s.shard))
      ? []
      : [{ shard: s.shard, epoch: s.epoch, config: set.config, to: heir.member, copy: heir.id }];
  });
}

/**
 * A copy that the shard is better without: one that joins though nobody waits for it any more, or that is one too many.
 * One for each shard: with it the config changes.
 */
function superfluous(look: Look, s: Shard, set: CopySet, crowd: Crowd): Copy | undefined {
  const { state, absences, nowMs, draining } = look;
  const { level, replicas } = policyOf(state, s.shard);
  const heir = heirNamed(state, s.shard);
  const joins = set.copies.filter((c) => c.state === 'joining' && c.member !== s.owner);
  // While the owner is away it may be all that is left of the shard: an operator may want it (shard-loss.ts).
  const isServed = s.owner !== undefined && isAlive(look, s.owner);
  const gone = joins.find(
    (c) =>
      // mutation: lost/joining-removed
      isServed &&
      (draining.has(c.member) || nowMs >= absences.endMs(c.member, REJOIN_MS) || absences.isStuck(s.shard, c, nowMs)),
  );
  if (gone !== undefined) return gone;
  const synced = set.copies.filter((c) => c.state === 'in-sync');
  const staying = synced.filter((c) => !draining.has(c.member)).length;
  const unwanted = staying >= replicas ? joins.find((c) => c.member !== heir) : undefined;
  return unwanted ?? (level === 'durable' ? undefined : surplus(look, s, set, () => crowd));
}

/** How many copies a member has above its part. */
type Crowd = (id: string) => number;

/** A copy in sync that is one too many: of those in one zone with most others, that of the most crowded server. */
function surplus(
  { state, draining }: Pick<Look, 'state' | 'draining'>,
  s: Shard,
  { copies }: CopySet,
  crowdNow: () => Crowd,
): Copy | undefined {
  const { replicas, minInSync } = policyOf(state, s.shard);
  const synced = copies.filter((c) => c.state === 'in-sync');
  if (s.owner === undefined || synced.length <= minInSync) return undefined;
  const heir = heirNamed(state, s.shard);
  const staying = synced.filter((c) => !draining.has(c.member)).length;
  const backups = synced.filter((c) => c.member !== s.owner);
  // Those of drained servers go first, but not before others have taken their place, unless there is room for no more.
  const needsRoom = isFull(copies) && copies.every((c) => c.state !== 'joining');
  const leaving = staying >= replicas || needsRoom ? backups.find((c) => draining.has(c.member)) : undefined;
  // One more than wanted is there until the shard is its heir's.
  if (leaving !== undefined || staying <= replicas || heir !== undefined) return leaving;
  const crowd = crowdNow();
  const zones = new Map(copies.map(({ member }) => [member, zoneIn(state, member)]));
  const together = (c: Copy): number => synced.filter(({ member }) => zones.get(member) === zones.get(c.member)).length;
  return [...backups].sort(
    (a, b) => together(b) - together(a) || crowd(b.member) - crowd(a.member) || b.rank - a.rank,
  )[0];
}

/** Of a durable shard, whose owner alone may take it away: a copy that is one too many. */
export function surplusCopy(state: MetadataState, s: Shard, set: CopySet): Copy | undefined {
  if (policyOf(state, s.shard).level !== 'durable') return undefined;
  return surplus({ state, draining: drainingIn(state) }, s, set, () => crowdIn(state, new Loads(state)));
}

function zoneIn({ members }: MetadataState, id: string): string {
  const member = members.get(id);
  return member === undefined ? id : zoneOf(member);
}

function drainingIn({ servers }: MetadataState): Set<string> {
  return new Set(servers.filter((s) => s.draining).map((s) => s.id));
}

function crowdIn(state: MetadataState, loads: Loads): Crowd {
  const bounds = copyBounds(state, keepersOf(state));
  return (id) => loads.copies(id) - (bounds.get(id) ?? 0);
}

function removals(look: Look): RemovedCopy[] {
  const { state } = look;
  const loads = new Loads(state);
  const crowd = crowdIn(state, loads);
  return state.shards.flatMap((s): RemovedCopy[] => {
    const set = state.copySets[s.shard];
    const copy = set === undefined ? undefined : superfluous(look, s, set, crowd);
    if (set === undefined || copy === undefined) return [];
    const { member, start } = copy;
    loads.remove(member);
    const failed = look.absences.isStuck(s.shard, copy, look.nowMs) ? ({ failed: true } as const) : {};
    return [{ shard: s.shard, epoch: s.epoch, config: set.config, member, start, whole: false, ...failed, lsn: 0 }];
  });
}

/** Copies per member, and those among them that are being made, from and to it. */
class Loads {
  readonly #copies = new Map<string, number>();
  readonly #joins = new Map<string, number>();

  /** Nothing is being copied to a member that is not there, nor from an owner that is not. */
  constructor(state: MetadataState, isThere: (id: string) => boolean = () => true) {
    state.copySets.forEach((set, shard) => {
      const owner = state.shards[shard]?.owner;
      const from = owner !== undefined && isThere(owner) ? owner : undefined;
      const joins = (c: Copy): boolean => c.state === 'joining' && c.member !== owner && isThere(c.member);
      for (const c of set.copies) this.add(c.member, joins(c) ? from : undefined);
    });
  }

  remove(member: string): void {
    this.#copies.set(member, this.copies(member) - 1);
  }

  /** `from`: the owner that it is being copied from. */
  add(member: string, from: string | undefined): void {
    this.#count(this.#copies, member);
    if (from === undefined) return;
    this.#count(this.#joins, member);
    this.#count(this.#joins, from);
  }

  copies(id: string): number {
    return this.#copies.get(id) ?? 0;
  }

  isBusy(id: string): boolean {
    return (this.#joins.get(id) ?? 0) >= JOINS_AT_ONCE;
  }

  #count(of: Map<string, number>, id: string): void {
    of.set(id, (of.get(id) ?? 0) + 1);
  }
}

/** How many copies are missing, where those of drained servers do not count: others are to take their place. */
function missing(look: Look, s: Shard, { copies }: CopySet): number {
  const counted = copies.filter(
    (c) => !look.draining.has(c.member) && (c.state !== 'eligible' || isAlive(look, c.member)),
  ).length;
  return policyOf(look.state, s.shard).replicas - counted;
}

/**
 * Its drained owner hands it over to a copy that stays (core/shards/handover.ts). That takes a moment, in which clients
 * wait, and would begin anew in another config.
 */
function isHandedOver(look: Look, { owner = '' }: Shard, { copies }: CopySet): boolean {
  const stays = ({ member }: Copy): boolean => !look.draining.has(member) && isAlive(look, member);
  return look.draining.has(owner) && copies.some((c) => c.state === 'in-sync' && c.id !== undefined && stays(c));
}

function additions(look: Look): AddedCopy[] {
  const { state, absences, nowMs, draining } = look;
  // A member that was there a moment ago keeps its place for a time; a copy goes there when it is back.
  const candidates = keepersOf(state).filter((m) => !draining.has(m.id) && !absences.isReplaced(m.id, nowMs));
  const bounds = copyBounds(state, candidates);
  const loads = new Loads(state, (id) => isAlive(look, id));
  const hasRoom = (id: string): boolean => loads.copies(id) < (bounds.get(id) ?? 0);
  const added: AddedCopy[] = [];
  for (const s of state.shards) {
    const set = state.copySets[s.shard];
    if (set === undefined || s.owner === undefined || s.incarnation === undefined) continue;
    if (!isAlive(look, s.owner) || loads.isBusy(s.owner) || isFull(set.copies)) continue;
    if (isHandedOver(look, s, set)) continue;
    const wanted = missing(look, s, set);
    const heir = heirNamed(state, s.shard);
    if (wanted <= 0 && heir === undefined) continue;
    // What is drained goes: another copy in its zone is no copy too many there.
    const staying = set.copies.flatMap((c): Member[] => {
      const member = draining.has(c.member) ? undefined : state.members.get(c.member);
      return member === undefined ? [] : [member];
    });
    const without = candidates.filter((m) => set.copies.every((c) => c.member !== m.id));
    // First where the shard is to go: the move ends with the first attempt that is called off.
    const first = without.filter((m) => m.id === heir);
    const open = without.filter((m) => !absences.joins.rests(state, s.shard, m.id, nowMs));
    const untroubled = open.filter((m) => !absences.joins.troubled(state, s.owner ?? '', m.id, nowMs));
    const places =
      first.length > 0
        ? first
        : placeCopies(s.shard, staying, untroubled.length > 0 ? untroubled : open, wanted, hasRoom);
    const next = places.find((m) => isAlive(look, m.id) && !loads.isBusy(m.id));
    if (next === undefined) continue;
    const rank = Math.min(255, 1 + Math.max(0, ...set.copies.map((c) => c.rank)));
    added.push({
      shard: s.shard,
      epoch: s.epoch,
      config: set.config,
      member: next.id,
      start: startOf(state, next.id),
      rank,
    });
    loads.add(next.id, s.owner);
  }
  return added;
}

/** In the order of their urgency. */
export function nextCopies(
  state: MetadataState,
  leases: GrantedLeases,
  nowMs: number,
  absences: Absences,
): CopyCommand | undefined {
  const look: Look = { state, leases, absences, nowMs, draining: drainingIn(state) };
  const shards = heirs(look);
  if (shards.length > 0) return { t: 'shards-given', shards };
  const removed = removals(look);
  if (removed.length > 0) return { t: 'copies-removed', copies: removed };
  const copies = additions(look);
  return copies.length > 0 ? { t: 'copies-add', copies } : undefined;
}

/** Times at which nextCopies may have a new answer though nothing else has happened. */
export function copyLooksMs(state: MetadataState, leases: GrantedLeases, nowMs: number, absences: Absences): number[] {
  const vacantAt = state.shards.some((s) => s.owner === undefined) ? leases.earlierStartsOverAt() : undefined;
  return [vacantAt, absences.nextEndMs(nowMs)].filter((at): at is number => at !== undefined && at > nowMs);
}

/**
 * Who gets a dead owner's shard: the best of its living copies. 'empty': it may be emptied; undefined: it waits for a
 * copy, or for an operator.
 */
export function taker(
  state: MetadataState,
  shard: number,
  leases: GrantedLeases,
  nowMs: number,
  absences = new Absences(),
): ReturnType<typeof bestHeir> | 'empty' {
  const set = state.copySets[shard];
  if (set === undefined) return 'empty';
  if (!set.copies.some(isWhole)) return 'empty';
  const isUsable = (id: string): boolean => leases.alive(id, nowMs);
  const heir = bestHeir(state, set, isUsable);
  if (isAwaited(state, set, heir, isUsable, nowMs >= absences.recoveredMs(shard))) return undefined;
  if (heir !== undefined) return heir;
  const allDead = set.copies.every((c) => !isWhole(c) || leases.dead(c.member, nowMs));
  return allDead && !waitsOnLoss(policyOf(state, shard)) ? 'empty' : undefined; // mutation: copies/emptied-while-it-may-return
}
