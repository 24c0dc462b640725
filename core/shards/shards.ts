/**
 * All shards of one start of a server: gives each what concerns it, and begins and ends their lives. The contract is in
 * index.ts.
 */
import { workersOf } from '../metadata/placement.js';
import { EMPTY } from '../metadata/reduce.js';
import type { MetadataState, Move, Shard } from '../metadata/state.js';
import type { Action, Asked, Result, Told } from './actions.js';
import { ChangedShards } from './changed-shards.js';
import { advanceComing, comingDone, endComing, open } from './coming.js';
import { isNamed, moveOf, type Common } from './common.js';
import { advanceHeld, endHeld, heldDone } from './held.js';
import { serves, type Coming, type Held, type Life } from './life.js';
import { ShortLeases } from './short-leases.js';

export interface ShardsOptions {
  readonly memberId: string;
  /** Of this start of the server, hex. */
  readonly memberIncarnation: string;
  readonly memoryBytes: number;
  /** The least that a shard needs. */
  readonly shardMemoryMin: number;
  /** Of what is granted to clients, and how much longer the last of them may be relied on. */
  readonly leaseMs: number;
  readonly leaseOverMs: number;
  /** 64 random bits, hex. */
  readonly random64: () => string;
}

/**
 * What a result is for: a life and its state; the round of short leases; or a shard that is not tried, or kept, for a
 * while.
 */
type Waiting =
  | { readonly life: Life; readonly state: Life['state']; readonly did: Asked['do'] }
  | { readonly round: object }
  | { readonly resting: number }
  | { readonly staying: number };

/**
 * A shard that did not fit is not tried again for so long, though somebody plans it anew, such as the leader for a
 * server that is drained.
 */
const NO_ROOM_MS = 10_000;

export class Shards implements Common {
  readonly #options: ShardsOptions;
  readonly #lives = new Map<number, Life>();
  readonly #waiting = new Map<number, Waiting>();
  /** Shards that there was no memory for a moment ago. */
  readonly #noRoom = new Set<number>();
  /** Shards whose moves to here are being called off, because their copies are lost. */
  readonly #staying = new Set<number>();
  readonly #changed = new ChangedShards();
  readonly leases: ShortLeases;
  #actions: Action[] = [];
  #ticket = 0;
  #metadata: MetadataState = EMPTY;
  #leasesOver = false;
  #marked = false;
  #ended = false;

  constructor(options: ShardsOptions) {
    this.#options = options;
    this.leases = new ShortLeases({
      leaseMs: options.leaseMs,
      act: (action) => this.act(action),
      wait: (round) => this.#ask({ do: 'wait', ms: options.leaseOverMs }, { round }),
    });
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

  done({ of, failed }: Result): void {
    const waiting = this.#waiting.get(of);
    this.#waiting.delete(of);
    if (waiting === undefined || this.#ended) return;
    if ('round' in waiting) {
      for (const life of this.leases.over(waiting.round)) this.#advance(life);
    } else if ('resting' in waiting) {
      this.#noRoom.delete(waiting.resting);
    } else if ('staying' in waiting) {
      this.#staying.delete(waiting.staying);
    } else {
      const { life, state, did } = waiting;
      // Of an earlier state it says nothing about this one.
      if (this.#lives.get(life.shard) !== life || life.state !== state) return;
      if (life.kind === 'held') heldDone(this, life, did, failed);
      else comingDone(this, life, did, failed);
    }
    this.#look();
  }

  /** This server ends: whatever is open is closed. Nothing else is done any more. */
  endAll(): void {
    for (const one of this.#lives.values()) {
      if (one.kind === 'held') endHeld(this, one);
      else endComing(this, one);
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

  /** Every shard that the metadata gives to this server is served. */
  get settled(): boolean {
    return this.#metadata.shards.every((s) => {
      const life = this.#lives.get(s.shard);
      return s.owner !== this.memberId || (life !== undefined && serves(life) && life.epoch === s.epoch);
    });
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
  get leasesOver(): boolean {
    return this.#leasesOver;
  }

  act(action: Told): void {
    this.#actions.push(action);
  }

  ask(life: Life, action: Asked): void {
    this.#ask(action, { life, state: life.state, did: action.do });
  }

  mark(): void {
    if (!this.#marked) this.act({ do: 'mark' });
    this.#marked = true;
  }

  given(life: Coming): void {
    const { shard, epoch, incarnation, memoryBytes } = life;
    const held: Held = {
      kind: 'held',
      shard,
      epoch,
      incarnation,
      memoryBytes,
      state: { is: 'announced', busy: false },
    };
    this.#lives.set(shard, held);
    this.act({ do: 'note', note: { of: 'came', shard, epoch } });
    advanceHeld(this, held);
  }

  end(life: Life): void {
    this.#lives.delete(life.shard);
    this.#changed.again(life.shard);
    this.leases.done(life);
    if (life.kind !== 'coming' || !life.full) return;
    this.#noRoom.add(life.shard);
    this.#ask({ do: 'wait', ms: NO_ROOM_MS }, { resting: life.shard });
  }

  #ask(action: Asked, waiting: Waiting): void {
    const of = ++this.#ticket;
    this.#waiting.set(of, waiting);
    this.#actions.push({ ...action, of });
  }

  #advance(life: Life): void {
    if (this.#lives.get(life.shard) !== life) return;
    if (life.kind === 'held') advanceHeld(this, life);
    else advanceComing(this, life);
  }

  /** What the metadata takes away first: a lease that is granted now relies on that being asked for. */
  #look(): void {
    do this.#lookOnce();
    while (this.#changed.pending);
  }

  #lookOnce(): void {
    const changed = this.#changed.since(this.#metadata);
    for (const { shard } of changed) {
      const life = this.#lives.get(shard);
      if (life !== undefined) this.#advance(life);
    }
    if (!isNamed(this)) return;
    for (const move of this.#metadata.moves) this.#comes(move);
    const fresh = changed.filter((s) => s.owner === this.memberId && !this.#lives.has(s.shard));
    if (fresh.length > 0) this.#openAll(fresh);
  }

  #held(): number {
    let held = 0;
    for (const life of this.#lives.values()) if (life.kind === 'held') held++;
    return held;
  }

  #openAll(shards: readonly Shard[]): void {
    const { memoryBytes, shardMemoryMin, random64 } = this.#options;
    // A limit for each, not a share: shards that come later are not refused because of those that were first. What all
    // of them take together the data plane bounds.
    const each = Math.max(shardMemoryMin, Math.floor(memoryBytes / (this.#held() + shards.length)));
    for (const { shard, epoch, worker } of shards) {
      if (moveOf(this.#metadata, shard)?.phase === 'released') this.act({ do: 'note', note: { of: 'empty', shard } });
      const life: Held = {
        kind: 'held',
        shard,
        epoch,
        incarnation: random64(),
        memoryBytes: each,
        state: { is: 'opening' },
      };
      this.#lives.set(shard, life);
      this.ask(life, { do: 'open', shard, worker, epoch, incarnation: life.incarnation, memoryBytes: each });
    }
  }

  /** Begins to copy what moves to here; gives back what was copied to here and is lost. */
  #comes({ shard, to, planned, phase }: Move): void {
    const { memoryBytes, shardMemoryMin, random64 } = this.#options;
    const s = this.#metadata.shards[shard];
    const me = this.#metadata.members.get(this.memberId);
    if (
      to !== this.memberId ||
      me === undefined ||
      s?.owner === undefined ||
      s.owner === this.memberId ||
      this.#lives.has(shard)
    )
      return;
    if (phase !== undefined) this.#stay(s, s.owner);
    if (phase !== undefined || s.incarnation === undefined || this.#noRoom.has(shard)) return;
    const count = this.#lives.size;
    const life: Coming = {
      kind: 'coming',
      shard,
      epoch: s.epoch + 1,
      planned,
      worker: count % workersOf(me),
      incarnation: random64(),
      memoryBytes: Math.max(shardMemoryMin, Math.floor(memoryBytes / (count + 1))),
      attempts: 0,
      last: false,
      full: false,
      state: { is: 'opening' },
    };
    this.#lives.set(shard, life);
    this.act({ do: 'note', note: { of: 'comes', shard } });
    open(this, life);
  }

  /** What was copied is not here any more: its owner, which has it all, is to keep it. */
  #stay({ shard, epoch }: Shard, owner: string): void {
    if (this.#staying.has(shard)) return;
    this.#staying.add(shard);
    this.#ask(
      { do: 'propose', command: { t: 'shard-move', shard, epoch, to: owner, lost: this.memberIncarnation } },
      { staying: shard },
    );
  }
}
