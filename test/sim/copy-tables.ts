/**
 * The copies of one life of a member, simulated: tables that are lists of records (copies/table.ts), links between them
 * that work or do not, and what the data plane promises of a copy (native/data-plane.ts). Time is the member's own.
 */
import type { CopiesNow, ReplicaEvent, Failure } from '../../core/shards/index.js';
import type { Copy, CopySet, Policy } from '../../core/metadata/state.js';
import type { Random } from '../support/random.js';
import { newPeer, Table, type Peer } from './copies/table.js';

export interface CopyTablesOptions {
  readonly random: Random;
  readonly nowMs: () => number;
  /** Each record is another one. */
  readonly record: () => number;
  /** The tables of another member's life, if it runs and can be reached. */
  readonly reach: (id: string, start: string) => CopyTables | undefined;
  readonly notice: (shard: number, copy: string, what: ReplicaEvent) => void;
  readonly ownerSuspected: (shard: number, copy: string, suspicion: { readonly prepared: number } | undefined) => void;
  /** There is a way for values from the owner. */
  readonly linked: (owner: string) => boolean;
  readonly counted: (
    what: 'led' | 'handed' | 'joined' | 'late' | 'back' | 'suspected' | 'damaged' | 'refused' | 'kept',
  ) => void;
}

interface Followed {
  readonly owner: string;
  readonly start: string;
}

/** What the owner has heard of a copy. */
interface Heard {
  atMs: number;
  joined: boolean;
  late: boolean;
}

const COPY_LEASE_MS = 60;
/** Of each of two clocks, with something to spare. */
const DRIFT = 0.04;
const SLOW_MS = 120;
/** A copy is found to be none once in so many messages. */
const DAMAGE = 1_000;
const GONE: Failure = { full: false, error: 'the owner does not answer' };

export class CopyTables {
  readonly tables = new Map<number, Table>();
  readonly #options: CopyTablesOptions;
  readonly #followed = new Map<number, Followed>();
  /** Tables that have followed an owner, or were one. */
  readonly #copies = new Set<number>();
  readonly #heard = new Map<string, Heard>();
  /** Copies here that have said so since they acknowledged last. */
  readonly #suspecting = new Set<number>();
  /** Since when copies here hear nothing of their owners. */
  readonly #listened = new Map<number, number>();
  #calls = 0;

  constructor(options: CopyTablesOptions) {
    this.#options = options;
  }

  open(shard: number, epoch: number, id: string): void {
    this.tables.set(shard, new Table(id, epoch));
    this.#copies.delete(shard);
  }

  close(shard: number): void {
    this.tables.delete(shard);
    this.#followed.delete(shard);
  }

  /** It is no copy any more. What it has is copied with the rest when the next one follows. */
  keepBase(shard: number, epoch: number, id: string): void {
    this.close(shard);
    this.open(shard, epoch, id);
    this.#options.counted('kept');
  }

  // ---- a backup

  /** Whether the owner can be asked for its entries; they come when the copy follows. */
  copied({ owner, start }: Followed, shard: number): Failure | undefined {
    if (!this.#options.linked(owner)) return GONE;
    return this.#ownerOf(shard, { owner, start }) === undefined ? GONE : undefined;
  }

  /** The place in the owner's log, and the link. What fails may fail after the owner has heard of it. */
  follow(shard: number, from: Followed): Failure | undefined {
    const { random } = this.#options;
    const table = this.#table(shard);
    const owner = this.#ownerOf(shard, from);
    if (owner?.epoch !== table.epoch || random.below(20) === 0) return GONE;
    table.log.splice(0, table.log.length, ...owner.log.slice(0, owner.committed));
    table.committed = table.log.length;
    owner.peers.set(table.id, newPeer('', '', table.id, 'joins'));
    this.#options.reach(from.owner, from.start)?.met(table.id);
    this.#followed.set(shard, from);
    this.#copies.add(shard);
    this.#listened.set(shard, this.#options.nowMs());
    return random.below(8) === 0 ? GONE : undefined;
  }

  followOwner(shard: number, owner: Followed): void {
    this.#followed.set(shard, owner);
    this.#suspecting.delete(shard);
    this.#listened.set(shard, this.#options.nowMs());
  }

  // ---- an owner

  lead(shard: number, epoch: number, copies: CopiesNow): void {
    const table = this.#table(shard);
    this.#followed.delete(shard);
    table.lead(epoch, ...said(table, copies));
    // There may be no memory for what they will lack.
    for (const id of copies.joining) if (this.#options.random.below(8) === 0) table.peers.delete(id);
    for (const id of table.peers.keys()) this.met(id);
    this.#options.counted(copies.handed ? 'handed' : 'led');
  }

  /** Whether the copy has all that there is, and may be given the shard; undefined: it is not in sync. */
  hasAll(shard: number, id: string): boolean | undefined {
    const table = this.#table(shard);
    const peer = table.peers.get(id);
    if (peer?.standing !== 'in-sync') return undefined;
    return table.committed === table.log.length && peer.prepared === table.log.length;
  }

  /** Only such a table can lead. */
  isCopy(shard: number): boolean {
    return this.#copies.has(shard);
  }

  stepDown(shard: number): void {
    this.#copies.add(shard);
    this.#table(shard).stepDown();
  }

  configure(shard: number, epoch: number, copies: CopiesNow): void {
    const table = this.#table(shard);
    if (table.role === 'backup') {
      table.lead(epoch, ...said(table, { ...copies, eligible: [], joining: [] }));
      return;
    }
    const before = new Map(table.peers);
    table.configure(...said(table, copies));
    // They have all that was committed when they were let go of: they may go on where they were.
    for (const id of [...copies.eligible, ...copies.joining]) {
      const peer = before.get(id);
      if (peer?.standing !== 'in-sync' || table.peers.has(id)) continue;
      // There may be no memory for what it will lack.
      if (this.#options.random.below(8) === 0) continue;
      table.peers.set(id, { ...peer, standing: 'joins' });
      this.met(id);
    }
  }

  /** From now on it is waited for. The number of the call, which ends the one before. */
  require(shard: number, id: string, clientsUntilMs: number): Failure | number {
    const peer = this.#table(shard).peers.get(id);
    if (peer?.follows !== true || peer.standing === 'in-sync') return GONE;
    if (peer.standing === 'joins') {
      peer.settledMs = clientsUntilMs;
      peer.standing = 'required';
    }
    return (peer.call = ++this.#calls);
  }

  /** Whether it may be proposed: then it is waited for until the next config; 'later': not yet. */
  required(shard: number, id: string, call: number): Failure | 'later' | number {
    const table = this.tables.get(shard);
    const peer = table?.peers.get(id);
    if (table === undefined || peer?.call !== call) return GONE;
    if (peer.standing === 'proposed') return table.committed;
    if (peer.standing !== 'required') return GONE;
    if (peer.prepared < table.committed || this.#options.nowMs() < peer.settledMs) return 'later';
    peer.standing = 'proposed';
    return table.committed;
  }

  drop(shard: number, id: string): void {
    const peers = this.tables.get(shard)?.peers;
    const standing = peers?.get(id)?.standing;
    if (standing === 'joins' || standing === 'required') peers?.delete(id);
  }

  /** Nobody relies on an earlier owner, and all copies in sync have what came with the shard. */
  tookOver(shard: number): boolean {
    const table = this.#table(shard);
    return table.tookOver && this.#options.nowMs() >= table.grantedUntilMs;
  }

  rightMs(shard: number, leaderMs: number): number {
    return this.tables.get(shard)?.rightMs(leaderMs) ?? -Infinity;
  }

  // ---- time

  tick(leaderUntilMs: number): void {
    const { random, record, nowMs } = this.#options;
    for (const [shard, table] of [...this.tables]) {
      if (table.role === 'backup') this.#exchange(shard, table);
      else {
        const mayAnswer = table.serving && nowMs() < table.rightMs(leaderUntilMs);
        if (mayAnswer && table.admits() && random.below(4) === 0) {
          table.log.push({ number: record(), epoch: table.epoch });
          table.commit();
        }
        for (const peer of [...table.peers.values()]) this.#look(shard, peer);
      }
    }
  }

  /** A link's message and its answer, and the acknowledgement. */
  #exchange(shard: number, table: Table): void {
    const { random, nowMs, reach, counted, notice } = this.#options;
    const from = this.#followed.get(shard);
    const other = from === undefined ? undefined : reach(from.owner, from.start);
    const owner = other?.tables.get(shard);
    const peer = owner?.role === 'owner' ? owner.peers.get(table.id) : undefined;
    this.#watch(shard, table, other === undefined);
    if (other === undefined || owner === undefined || random.below(4) === 0) return;
    this.#listened.set(shard, nowMs());
    if (peer === undefined || (table.epoch <= owner.epoch && !owner.goesOn(table))) {
      if (owner.role !== 'owner') return;
      notice(shard, table.id, 'unknown');
      other.refused(shard, table.id);
      return;
    }
    if (table.damaged) return;
    if (!table.follow(owner)) return;
    if (random.below(DAMAGE) === 0) {
      table.damaged = true;
      counted('damaged');
      notice(shard, table.id, 'damaged');
      return;
    }
    if (random.below(4) > 0) table.take(owner, 1 + random.below(4));
    table.grantedUntilMs = Math.max(table.grantedUntilMs, nowMs() + COPY_LEASE_MS * (1 + DRIFT));
    if (this.#suspecting.delete(shard)) this.#options.ownerSuspected(shard, table.id, undefined);
    if (random.below(4) === 0) return;
    other.acknowledged(shard, peer, table.log.length);
  }

  /** Nobody answers where the owner was, or nothing has come of it for a lease. Both may be wrong. */
  #watch(shard: number, table: Table, isRefused: boolean): void {
    const { random, nowMs, ownerSuspected, counted } = this.#options;
    if (this.#suspecting.has(shard) || !this.#followed.has(shard)) return;
    const silentMs = Math.max(table.grantedUntilMs, (this.#listened.get(shard) ?? nowMs()) + COPY_LEASE_MS);
    if (!(isRefused && random.below(4) === 0) && nowMs() < silentMs + COPY_LEASE_MS / 4) return;
    this.#suspecting.add(shard);
    counted('suspected');
    ownerSuspected(shard, table.id, { prepared: table.log.length });
  }

  /** At the owner: it asks to follow, and cannot. */
  refused(shard: number, id: string): void {
    this.#options.counted('refused');
    this.#options.notice(shard, id, 'refused');
  }

  /** At the owner. */
  acknowledged(shard: number, peer: Peer, prepared: number): void {
    const { nowMs, notice, counted } = this.#options;
    const table = this.#table(shard);
    peer.follows = true;
    peer.prepared = Math.max(peer.prepared, prepared);
    peer.leaseMs = nowMs() + COPY_LEASE_MS * (1 - DRIFT);
    table.commit();
    const heard = this.#heard.get(peer.id) ?? this.met(peer.id);
    heard.atMs = nowMs();
    if (heard.late) {
      heard.late = false;
      counted('back');
      notice(shard, peer.id, 'back');
    }
    if (peer.standing !== 'joins' || heard.joined || prepared + 2 < table.log.length) return;
    heard.joined = true;
    counted('joined');
    notice(shard, peer.id, 'joined');
  }

  /** At the owner: from now on it is expected to acknowledge. */
  met(id: string): Heard {
    const heard = { atMs: this.#options.nowMs(), joined: false, late: false };
    this.#heard.set(id, heard);
    return heard;
  }

  #look(shard: number, peer: Peer): void {
    const heard = this.#heard.get(peer.id);
    if (heard === undefined || heard.late || peer.standing === 'joins') return;
    if (this.#options.nowMs() < heard.atMs + SLOW_MS) return;
    heard.late = true;
    heard.joined = false;
    this.#options.counted('late');
    this.#options.notice(shard, peer.id, 'late');
  }

  #ownerOf(shard: number, { owner, start }: Followed): Table | undefined {
    const table = this.#options.reach(owner, start)?.tables.get(shard);
    return table?.role === 'owner' ? table : undefined;
  }

  #table(shard: number): Table {
    const table = this.tables.get(shard);
    if (table === undefined) throw new Error(`shard ${shard} is not open`);
    return table;
  }
}

/** As the table of the other simulation wants it. */
function said(table: Table, { config, minInSync, inSync, eligible, joining, handed }: CopiesNow): [CopySet, Policy] {
  const are =
    (state: Copy['state']) =>
    (id: string): Copy => ({ member: '', start: '', id, worker: 0, state, rank: 0 });
  const synced = [table.id, ...inSync].map(are('in-sync'));
  const copies = [...synced, ...eligible.map(are('eligible')), ...joining.map(are('joining'))];
  return [
    { config, copies, ...(handed ? { handed: table.epoch + 1 } : {}) },
    { level: 'replicated', replicas: synced.length, minInSync, onLoss: 'wait' },
  ];
}
