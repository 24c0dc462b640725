/**
 * All shards of one start of a server: gives each what concerns it, and begins and ends their lives. The contract is in
 * index.ts.
 */
import { tableMemory, workersOf } from '../metadata/placement.js';
import { EMPTY } from '../metadata/reduce.js';
import type { MetadataState, Shard } from '../metadata/state.js';
import type { Action, Asked, CopyNoticed, HeldBack, Left, Result, Told } from './actions.js';
import { advanceBackup, backupDone, endBackup, isNone, openBackup, orphaned } from './backup.js';
import { ChangedShards } from './changed-shards.js';
import { isDurable, isNamed, type Common } from './common.js';
import { copiesDone, copiesNow, copyNoticed } from './companions.js';
import { throwAway } from './copy-end.js';
import { ownEntry } from './copy-entry.js';
import { advanceHeld, endHeld, heldDone } from './held.js';
import { Heirs, type Looked } from './heirs.js';
import { newBackup, noCompanions, serves, type Backup, type Held, type Life, type Orphan } from './life.js';
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
 * What a result is for: a life and its state, or a part of one; a shard of which the metadata has what is not here; or a
 * server that may take shards over when this one ends.
 */
type Waiting =
  | { readonly life: Life; readonly state: Life['state']; readonly did: Asked['do'] }
  | { readonly life: Held; readonly part: object; readonly did: Asked['do'] }
  | { readonly missing: number }
  | { readonly heir: Looked };

export class Shards implements Common {
  readonly #options: ShardsOptions;
  readonly #lives = new Map<number, Life>();
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
    for (const life of [...this.#lives.values()]) this.#advance(life);
  }

  /** The data plane has noticed something of a copy: of a shard that is this server's, or of another's shard here. */
  copyNoticed(shard: number, copy: string, what: CopyNoticed): void {
    const life = this.#lives.get(shard);
    if (this.#ended || life === undefined) return;
    if (what === 'damaged' || what === 'unknown' || what === 'full') {
      if (life.kind === 'backup' && life.incarnation === copy) isNone(this, life, what);
    } else if (life.kind === 'held' && life.state.is !== 'closing') copyNoticed(this, life, copy, what);
  }

  /** The data plane says that the owner of a shard is gone, of which this copy is here; undefined: it is not. */
  orphaned(shard: number, copy: string, orphan: Orphan | undefined): void {
    const life = this.#lives.get(shard);
    if (!this.#ended && life?.kind === 'backup' && life.incarnation === copy) orphaned(this, life, orphan);
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
      const { life, part, did } = waiting;
      if (this.#lives.get(life.shard) !== life || life.state.is === 'closing') return;
      copiesDone(this, life, part, did, result);
    } else {
      const { life, state, did } = waiting;
      // Of an earlier state it says nothing about this one.
      if (this.#lives.get(life.shard) !== life || life.state !== state) return;
      if (life.kind === 'held') heldDone(this, life, did, failed);
      else backupDone(this, life, did, failed);
    }
    this.#look();
  }

  /** This server will end: its shards are given to copies in sync, and nobody is to wait for its own copies. */
  leave(): void {
    this.#leaving = true;
    for (const life of [...this.#lives.values()]) this.#advance(life);
    this.#heirs.watch(heirsOf(this, this.#lives.values()));
  }

  /** This server ends: whatever is open is closed. Nothing else is done any more. */
  endAll(): void {
    for (const one of this.#lives.values()) {
      if (one.kind === 'held') endHeld(this, one);
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
    return isSettled(this, this.#lives);
  }

  /** What this server, which ends, waits for: shards that others may take over, and copies that are waited for. */
  get staying(): number[] {
    return stayingOf(this, this.#lives.values(), this.#heirs.gone);
  }

  get left(): Left[] {
    return leftOf(this, this.#lives.values(), this.#heirs.gone);
  }

  /** Copies of shards here that were late too often, and are not waited for yet. */
  get heldBack(): HeldBack[] {
    return heldBackOf(this.#lives.values());
  }

  /** Shards of which a copy here lacks memory for what their owners have. */
  get fullCopies(): number[] {
    return fullCopiesOf(this, this.#lives.values(), this.#tooFull);
  }

  /** Numbers of the shards that are served. */
  get serving(): number[] {
    return [...this.#lives.values()]
      .filter(serves)
      .map((life) => life.shard)
      .sort((a, b) => a - b);
  }

  /** The shard at this server, as long as the metadata has it so: open and announced. */
  announced(shard: number): Shard | undefined {
    const life = this.#lives.get(shard);
    const s = this.#metadata.shards[shard];
    return !this.#ended &&
      life?.kind === 'held' &&
      s?.owner === this.memberId &&
      s.epoch === life.epoch &&
      s.incarnation === life.incarnation
      ? s
      : undefined;
  }

  // ---------------------------------------------------------------- what lives have in common

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

  act(action: Told): void {
    this.#actions.push(action);
  }

  ask(life: Life, action: Asked): void {
    this.#ask(action, { life, state: life.state, did: action.do });
  }

  askFor(life: Held, part: object, action: Asked): void {
    this.#ask(action, { life, part, did: action.do });
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
    const held: Held = {
      kind: 'held',
      shard,
      epoch,
      incarnation,
      worker,
      copies: noCompanions(set.config, copies.joining),
      state: { is: 'leading' },
    };
    this.#lives.set(shard, held);
    this.act({ do: 'note', note: { of: 'copy leads', shard, epoch } });
    this.ask(held, { do: 'lead', shard, epoch, incarnation, copies });
  }

  steppedDown({ shard, epoch, worker }: Held, copy: string): void {
    const set = this.#metadata.copySets[shard];
    const life = newBackup(shard, worker);
    Object.assign(life, { epoch, incarnation: copy, named: true, state: { is: 'stepping down' } });
    this.#lives.set(shard, life);
    const isHanded = set?.handed === this.#metadata.shards[shard]?.epoch;
    this.act({ do: 'note', note: { of: isHanded ? 'handed over' : 'deposed', shard, epoch } });
    this.ask(life, { do: 'step down', shard, copy });
  }

  noCopy({ shard, epoch, incarnation, worker }: Held): void {
    const life: Backup = { ...newBackup(shard, worker), epoch, incarnation };
    this.#lives.set(shard, life);
    throwAway(this, life);
  }

  end(life: Life): void {
    this.#lives.delete(life.shard);
    this.#changed.again(life.shard);
    if (life.kind === 'backup' && life.state.is === 'calling off' && life.full) this.#tooFull.add(life.shard);
  }

  #ask(action: Asked, waiting: Waiting): void {
    const of = ++this.#ticket;
    this.#waiting.set(of, waiting);
    this.#actions.push({ ...action, of });
  }

  #advance(life: Life): void {
    if (this.#lives.get(life.shard) !== life) return;
    if (life.kind === 'held') advanceHeld(this, life);
    else advanceBackup(this, life);
  }

  /** What the metadata takes away first: a lease that is granted now relies on that being asked for. */
  #look(): void {
    do this.#lookOnce();
    while (this.#changed.pending);
  }

  #lookOnce(): void {
    const draining = this.#metadata.servers.flatMap((one) => (one.draining ? [one.id] : [])).join();
    if (draining !== this.#draining) for (const shard of this.#lives.keys()) this.#changed.again(shard);
    this.#draining = draining;
    const changed = this.#changed.since(this.#metadata);
    for (const { shard } of changed) {
      const life = this.#lives.get(shard);
      if (life !== undefined) this.#advance(life);
    }
    if (!isNamed(this)) return; // mutation: shards/opened-unnamed
    this.#limit();
    for (const one of this.#found.splice(0)) takeUp(this, one, (life) => this.#lives.set(life.shard, life));
    this.#unread = this.#unread.filter((one) => keepsUnread(this, one));
    const fresh = changed.filter((s) => s.owner === this.memberId && !this.#lives.has(s.shard));
    if (fresh.length > 0) this.#openAll(fresh);
    for (const s of changed) this.#copies(s);
    for (const s of changed) this.#missing.renounce(s, this.#lives);
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
      const life: Held = {
        kind: 'held',
        shard,
        epoch,
        incarnation: this.random64(),
        worker,
        copies: noCompanions(),
        state: { is: 'opening' },
      };
      this.#lives.set(shard, life);
      const { incarnation } = life;
      this.ask(life, {
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
    if (!isWanted || this.#leaving || me === undefined || owner === memberId || this.#lives.has(shard)) return;
    if (owner === undefined || incarnation === undefined) return;
    const life = newBackup(shard, this.#lives.size % workersOf(me));
    life.full = this.#tooFull.delete(shard);
    this.#lives.set(shard, life);
    openBackup(this, life);
  }
}
