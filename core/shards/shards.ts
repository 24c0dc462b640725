/**
 * All shards of one start of a server: gives each what concerns it, and begins and ends them. The contract is in
 * index.ts.
 */
import { tableMemory, workersOf } from '../metadata/placement.js';
import { EMPTY } from '../metadata/reduce.js';
import type { MetadataState, Shard } from '../metadata/state.js';
import type { Action, Request, ReplicaEvent, RejoinBackoff, Left, Result, Effect } from './actions.js';
import { advanceBackup, backupDone, endBackup, isNone, openBackup, ownerSuspected } from './backup.js';
import { ChangedShards } from './changed-shards.js';
import { isDurable, isNamed, type ShardContext } from './context.js';
import { copiesDone, copiesNow, copyNoticed } from './progress.js';
import { throwAway } from './copy-end.js';
import { ownEntry } from './copy-entry.js';
import { advanceOwned, endOwned, ownedDone } from './owned.js';
import { Heirs, type Looked } from './heirs.js';
import {
  newBackup,
  newTracker,
  serves,
  type Backup,
  type Owned,
  type LocalShard,
  type Suspicion,
} from './local-shard.js';
import { MissingCopies } from './missing-copies.js';
import { keepsUnread, takeUp, type Found } from './recovered.js';
import { fullCopiesOf, heirsOf, heldBackOf, isSettled, leftOf, stayingOf } from './report.js';

export interface ShardsOptions {
  readonly memberId: string;
  /** Of this start of the server, hex. */
  readonly memberIncarnation: string;
  /** The least that a shard needs. */
  readonly shardMemoryMin: number;
  /** 64 random bits, hex. */
  readonly random64: () => string;
  /** What was on its disk. Missing: nothing. */
  readonly found?: readonly Found[];
}

/**
 * What a result is for: a shard and its state, or a part of one; a shard of which the metadata has what is not here; or a
 * server that may take shards over when this one ends.
 */
type Waiting =
  | { readonly local: LocalShard; readonly state: LocalShard['state']; readonly did: Request['do'] }
  | { readonly local: Owned; readonly part: object; readonly did: Request['do'] }
  | { readonly missing: number }
  | { readonly heir: Looked };

export class Shards implements ShardContext {
  readonly #options: ShardsOptions;
  readonly #locals = new Map<number, LocalShard>();
  readonly #waiting = new Map<number, Waiting>();
  /** Shards whose copies were called off here for want of memory. */
  readonly #tooFull = new Set<number>();
  readonly #missing = new MissingCopies(this, (command) =>
    this.#ask({ do: 'propose', command }, { missing: command.shard }),
  );
  readonly #heirs = new Heirs((action, heir) => this.#ask(action, { heir }));
  readonly #changed = new ChangedShards();
  readonly #found: Found[];
  #unread: Found[];
  #actions: Action[] = [];
  #ticket = 0;
  #metadata: MetadataState = EMPTY;
  #leasesOver = false;
  #marked = false;
  #leaving = false;
  /** Servers that are drained, as it was looked at last. */
  #draining = '';
  #tableMemory = 0;
  #ended = false;

  constructor(options: ShardsOptions) {
    this.#options = options;
    const found = options.found ?? [];
    this.#found = found.filter(({ whole }) => whole);
    this.#unread = found.filter(({ whole }) => !whole);
  }

  // ---------------------------------------------------------------- in

  /** The metadata as this server has applied it now. */
  see(metadata: MetadataState): void {
    if (this.#ended) return;
    this.#metadata = metadata;
    this.#look();
  }

  /** Nobody can rely on a lease of the last run, and this run has its own from the leader. */
  lastRunOver(): void {
    this.#leasesOver = true;
    if (this.#ended) return;
    for (const local of [...this.#locals.values()]) this.#advance(local);
  }

  /** The data plane has noticed something of a copy: of a shard that is this server's, or of another's shard here. */
  copyNoticed(shard: number, copy: string, what: ReplicaEvent): void {
    const local = this.#locals.get(shard);
    if (this.#ended || local === undefined) return;
    if (what === 'damaged' || what === 'unknown' || what === 'full') {
      if (local.kind === 'backup' && local.incarnation === copy) isNone(this, local, what);
    } else if (local.kind === 'owned' && local.state.is !== 'closing') copyNoticed(this, local, copy, what);
  }

  /** The data plane says that the owner of a shard is gone, of which this copy is here; undefined: it is not. */
  ownerSuspected(shard: number, copy: string, suspicion: Suspicion | undefined): void {
    const local = this.#locals.get(shard);
    if (!this.#ended && local?.kind === 'backup' && local.incarnation === copy) ownerSuspected(this, local, suspicion);
  }

  done(result: Result): void {
    const { of, failed } = result;
    const waiting = this.#waiting.get(of);
    this.#waiting.delete(of);
    if (waiting === undefined || this.#ended) return;
    if ('missing' in waiting) {
      this.#missing.done(waiting.missing);
      this.#changed.again(waiting.missing);
    } else if ('heir' in waiting) {
      this.#heirs.done(waiting.heir, failed);
    } else if ('part' in waiting) {
      const { local, part, did } = waiting;
      if (this.#locals.get(local.shard) !== local || local.state.is === 'closing') return;
      copiesDone(this, local, part, did, result);
    } else {
      const { local, state, did } = waiting;
      // Of an earlier state it says nothing about this one.
      if (this.#locals.get(local.shard) !== local || local.state !== state) return;
      if (local.kind === 'owned') ownedDone(this, local, did, failed);
      else backupDone(this, local, did, failed);
    }
    this.#look();
  }

  /** This server will end: its shards are given to copies in sync, and nobody is to wait for its own copies. */
  leave(): void {
    this.#leaving = true;
    for (const local of [...this.#locals.values()]) this.#advance(local);
    this.#heirs.watch(heirsOf(this, this.#locals.values()));
  }

  /** This server ends: whatever is open is closed. Nothing else is done any more. */
  endAll(): void {
    for (const one of this.#locals.values()) {
      if (one.kind === 'owned') endOwned(this, one);
      else endBackup(this, one);
    }
    this.#ended = true;
  }

  // ---------------------------------------------------------------- out

  /** What is to be done, in this order: to be asked for after each input. */
  take(): Action[] {
    const actions = this.#actions;
    this.#actions = [];
    return actions;
  }

  /** Every shard that the metadata gives to this server, or can give to nobody else, is served. */
  get settled(): boolean {
    return isSettled(this, this.#locals);
  }

  /** What this server, which ends, waits for: shards that others may take over, and copies that are waited for. */
  get staying(): number[] {
    return stayingOf(this, this.#locals.values(), this.#heirs.gone);
  }

  get left(): Left[] {
    return leftOf(this, this.#locals.values(), this.#heirs.gone);
  }

  /** Copies of shards here that were late too often, and are not waited for yet. */
  get heldBack(): RejoinBackoff[] {
    return heldBackOf(this.#locals.values());
  }

  /** Shards of which a copy here lacks memory for what their owners have. */
  get fullCopies(): number[] {
    return fullCopiesOf(this, this.#locals.values(), this.#tooFull);
  }

  /** Numbers of the shards that are served. */
  get serving(): number[] {
    return [...this.#locals.values()]
      .filter(serves)
      .map((local) => local.shard)
      .sort((a, b) => a - b);
  }

  /** The shard at this server, as long as the metadata has it so: open and announced. */
  announced(shard: number): Shard | undefined {
    const local = this.#locals.get(shard);
    const s = this.#metadata.shards[shard];
    return !this.#ended &&
      local?.kind === 'owned' &&
      s?.owner === this.memberId &&
      s.epoch === local.epoch &&
      s.incarnation === local.incarnation
      ? s
      : undefined;
  }

  // ---------------------------------------------------------------- what shards have in common

  get memberId(): string {
    return this.#options.memberId;
  }
  get memberIncarnation(): string {
    return this.#options.memberIncarnation;
  }
  get metadata(): MetadataState {
    return this.#metadata;
  }
  get tableMemory(): number {
    return this.#tableMemory;
  }
  get leaving(): boolean {
    return this.#leaving;
  }
  get leasesOver(): boolean {
    return this.#leasesOver;
  }

  act(action: Effect): void {
    this.#actions.push(action);
  }

  ask(local: LocalShard, action: Request): void {
    this.#ask(action, { local, state: local.state, did: action.do });
  }

  askFor(local: Owned, part: object, action: Request): void {
    this.#ask(action, { local, part, did: action.do });
  }

  random64(): string {
    return this.#options.random64();
  }

  mark(): void {
    if (!this.#marked) this.act({ do: 'mark' });
    this.#marked = true;
  }

  heir({ shard, worker }: Backup): void {
    const s = this.#metadata.shards[shard];
    const set = this.#metadata.copySets[shard];
    if (s === undefined || set === undefined) return;
    const { epoch } = s;
    // One that was promoted by its own proposal is open under the incarnation that it named there.
    const incarnation = s.incarnation ?? this.random64();
    const copies = copiesNow(this, s, set);
    const owned: Owned = {
      kind: 'owned',
      shard,
      epoch,
      incarnation,
      worker,
      copies: newTracker(set.config, copies.joining),
      state: { is: 'leading' },
    };
    this.#locals.set(shard, owned);
    this.act({ do: 'note', note: { of: 'copy leads', shard, epoch } });
    this.ask(owned, { do: 'lead', shard, epoch, incarnation, copies });
  }

  steppedDown({ shard, epoch, worker }: Owned, copy: string): void {
    const set = this.#metadata.copySets[shard];
    const local = newBackup(shard, worker);
    Object.assign(local, { epoch, incarnation: copy, named: true, state: { is: 'stepping down' } });
    this.#locals.set(shard, local);
    const isHanded = set?.handed === this.#metadata.shards[shard]?.epoch;
    this.act({ do: 'note', note: { of: isHanded ? 'handed over' : 'deposed', shard, epoch } });
    this.ask(local, { do: 'step down', shard, copy });
  }

  noCopy({ shard, epoch, incarnation, worker }: Owned): void {
    const local: Backup = { ...newBackup(shard, worker), epoch, incarnation };
    this.#locals.set(shard, local);
    throwAway(this, local);
  }

  end(local: LocalShard): void {
    this.#locals.delete(local.shard);
    this.#changed.again(local.shard);
    if (local.kind === 'backup' && local.state.is === 'calling off' && local.full) this.#tooFull.add(local.shard);
  }

  #ask(action: Request, waiting: Waiting): void {
    const of = ++this.#ticket;
    this.#waiting.set(of, waiting);
    this.#actions.push({ ...action, of });
  }

  #advance(local: LocalShard): void {
    if (this.#locals.get(local.shard) !== local) return;
    if (local.kind === 'owned') advanceOwned(this, local);
    else advanceBackup(this, local);
  }

  /** What the metadata takes away first: a lease that is granted now relies on that being asked for. */
  #look(): void {
    do this.#lookOnce();
    while (this.#changed.pending);
  }

  #lookOnce(): void {
    const draining = this.#metadata.servers.flatMap((one) => (one.draining ? [one.id] : [])).join();
    if (draining !== this.#draining) for (const shard of this.#locals.keys()) this.#changed.again(shard);
    this.#draining = draining;
    const changed = this.#changed.since(this.#metadata);
    for (const { shard } of changed) {
      const local = this.#locals.get(shard);
      if (local !== undefined) this.#advance(local);
    }
    if (!isNamed(this)) return; // mutation: shards/opened-unnamed
    this.#limit();
    for (const one of this.#found.splice(0)) takeUp(this, one, (local) => this.#locals.set(local.shard, local));
    this.#unread = this.#unread.filter((one) => keepsUnread(this, one));
    const fresh = changed.filter((s) => s.owner === this.memberId && !this.#locals.has(s.shard));
    if (fresh.length > 0) this.#openAll(fresh);
    for (const s of changed) this.#copies(s);
    for (const s of changed) this.#missing.renounce(s, this.#locals);
  }

  /** Of all tables here, and those that come. */
  #limit(): void {
    const memoryBytes = Math.max(this.#options.shardMemoryMin, tableMemory(this.#metadata));
    if (memoryBytes === this.#tableMemory) return;
    this.#tableMemory = memoryBytes;
    this.act({ do: 'limit', memoryBytes });
  }

  #openAll(shards: readonly Shard[]): void {
    for (const { shard, epoch, worker } of shards) {
      if (this.#missing.isLost(shard)) continue; // mutation: shards/opened-empty
      const local: Owned = {
        kind: 'owned',
        shard,
        epoch,
        incarnation: this.random64(),
        worker,
        copies: newTracker(),
        state: { is: 'opening' },
      };
      this.#locals.set(shard, local);
      const { incarnation } = local;
      this.ask(local, {
        do: 'open',
        shard,
        worker,
        epoch,
        incarnation,
        memoryBytes: this.#tableMemory,
        durable: isDurable(this, shard),
        buckets: 0,
      });
    }
  }

  /** Begins a copy that this server is to have of another's shard. */
  #copies({ shard, owner, incarnation }: Shard): void {
    const { memberId } = this;
    const me = this.#metadata.members.get(memberId);
    const isWanted = ownEntry(this, shard)?.state === 'joining';
    if (!isWanted || this.#leaving || me === undefined || owner === memberId || this.#locals.has(shard)) return;
    if (owner === undefined || incarnation === undefined) return;
    const local = newBackup(shard, this.#locals.size % workersOf(me));
    local.full = this.#tooFull.delete(shard);
    this.#locals.set(shard, local);
    openBackup(this, local);
  }
}
