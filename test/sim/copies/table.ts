/**
 * One server's table of a shard, as a list of records: the rules of an owner and of a backup as docs/replication.md has
 * them (the product's are native/replication/rules/replica_owner.c and replica_backup.c), as small as can be, so that there is
 * something to be lost when core/metadata gives a shard to the wrong copy. A message and its answer are one step here;
 * native/test/dataplane/replica_machine.c searches what may come between them.
 */
import { inSync } from '../../../core/metadata/copy-sets.js';
import type { CopySet, Policy } from '../../../core/metadata/state.js';
import { Violation } from '../checker.js';

/** Each record is another one. */
export interface Rec {
  readonly number: number;
  readonly epoch: number;
}

type Standing = 'joins' | 'required' | 'proposed' | 'in-sync';

/** A copy, as its owner sees it. */
export interface Peer {
  readonly id: string;
  readonly member: string;
  start: string;
  standing: Standing;
  /** It has acknowledged something in this epoch: so many records. */
  follows: boolean;
  prepared: number;
  leaseMs: number;
  /** Required: clients' leases from before have ended by then. */
  settledMs: number;
  /** The last call that required it; 0: none. */
  call: number;
}

export function newPeer(member: string, start: string, id: string, standing: Standing): Peer {
  return { id, member, start, standing, follows: false, prepared: 0, leaseMs: -Infinity, settledMs: 0, call: 0 };
}

/** What is left of a durable copy when its process ends. */
export interface OnDisk {
  readonly id: string;
  readonly epoch: number;
  readonly log: readonly Rec[];
  readonly committed: number;
}

export class Table {
  readonly log: Rec[];
  /** What is certain to be on the disk; undefined: nothing, or the shard is not durable. */
  disk: OnDisk | undefined;
  durable = false;
  /** It acknowledges what is in its memory; the disk has that some time after, in order. */
  early = false;
  committed: number;
  role: 'backup' | 'owner' = 'backup';
  withheld = false;
  /** It is found to be no copy: it takes and acknowledges nothing any more. */
  damaged = false;
  /** Until when some owner may rely on a lease of this copy. */
  grantedUntilMs = -Infinity;

  // As an owner.
  serving = false;
  paused = false;
  config = 0;
  inherited = 0;
  readonly peers = new Map<string, Peer>();
  /** The last of the leases that it has granted to clients ends then. */
  clientsUntilMs = -Infinity;
  #minInSync = 1;
  #inSync = 1;
  /** The policy wants no other copy. */
  #alone = false;
  /** In this config it commits what is on its disk. */
  #diskIn = 0;

  constructor(
    readonly id: string,
    public epoch: number,
    log: readonly Rec[] = [],
  ) {
    this.log = [...log];
    this.committed = log.length;
  }

  /** All that it has is on the disk from now on. */
  sync(): void {
    const { id, epoch, log, committed } = this;
    if (this.durable) this.disk = { id, epoch, log: [...log], committed };
  }

  /** Before it acknowledges anything: all of it is on the disk, or the beginning of the epoch is. */
  logged(): void {
    if (!this.early || this.disk?.epoch !== this.epoch) this.sync();
  }

  static from({ id, epoch, log, committed }: OnDisk): Table {
    const table = new Table(id, epoch, log);
    table.committed = committed;
    table.durable = true;
    table.sync();
    return table;
  }

  // ---- a backup

  /** False: an owner of the past, or one that it cannot go on with. */
  follow(owner: Table): boolean {
    if (!owner.goesOn(this)) return false;
    if (owner.epoch > this.epoch) {
      if (this.committed > owner.inherited)
        throw new Violation('copies', `copy ${this.id} truncates what has taken effect there`);
      this.log.length = Math.min(this.log.length, owner.inherited);
      this.epoch = owner.epoch;
      this.withheld = false;
    }
    return true;
  }

  take(owner: Table, count: number): void {
    this.log.push(...owner.log.slice(this.log.length, this.log.length + count));
    this.committed = Math.max(this.committed, Math.min(owner.committed, this.log.length));
  }

  // ---- an owner

  /** The owner that it has followed, which had all committed and was relied on no more, has handed the shard over. */
  handed(): void {
    this.committed = this.log.length;
    this.grantedUntilMs = -Infinity;
  }

  /** This copy has become the owner's, by this set. */
  lead(epoch: number, set: CopySet, policy: Policy): void {
    if (set.handed === epoch && this.epoch + 1 === epoch) this.handed();
    this.epoch = epoch;
    this.withheld = this.damaged = false;
    this.role = 'owner';
    this.serving = this.paused = false;
    this.inherited = this.log.length;
    this.peers.clear();
    for (const { member, start, id, state } of set.copies)
      if (id !== undefined && id !== this.id)
        this.peers.set(id, newPeer(member, start, id, state === 'in-sync' ? 'in-sync' : 'joins'));
    this.#count(set, policy);
    this.commit();
  }

  stepDown(): void {
    this.role = 'backup';
    this.serving = this.paused = false;
    this.peers.clear();
  }

  /** A later config of the same epoch: only now removed copies are let go of, and late additions given up. */
  configure(set: CopySet, policy: Policy): void {
    const named = new Set(set.copies.flatMap((c) => (c.state === 'in-sync' && c.id !== undefined ? [c.id] : [])));
    for (const id of named)
      if (id !== this.id && !this.isRequired(this.peers.get(id)))
        throw new Violation('copies', `copy ${id} is in sync, and its owner does not wait for it`);
    const joining = new Set(set.copies.flatMap((c) => (c.state === 'joining' && c.id !== undefined ? [c.id] : [])));
    for (const peer of this.peers.values()) {
      // Its process has ended, and it came back from its disk.
      peer.start = set.copies.find((c) => c.id === peer.id)?.start ?? peer.start;
      if (named.has(peer.id)) peer.standing = 'in-sync';
      // It goes on with what it has: nothing is committed that it lacks.
      else if (peer.standing === 'in-sync' && joining.has(peer.id)) peer.standing = 'joins';
      else if (peer.standing === 'in-sync') this.peers.delete(peer.id);
      else if (peer.standing === 'proposed') peer.standing = 'joins';
      // Its server has started again, and it begins anew.
      if (this.early && peer.standing !== 'in-sync' && set.copies.every((c) => c.id !== peer.id))
        this.peers.delete(peer.id);
    }
    this.#count(set, policy);
    this.commit();
  }

  /** Whether it may go on from where it is: one that joins not after an epoch that it has missed. */
  goesOn({ id, epoch }: Table): boolean {
    const peer = this.peers.get(id);
    return epoch <= this.epoch && (this.isRequired(peer) || (peer !== undefined && epoch + 1 >= this.epoch));
  }

  /** All copies in sync follow, and what came with the shard is committed. */
  get tookOver(): boolean {
    return this.committed >= this.inherited && [...this.peers.values()].every((p) => !this.isRequired(p) || p.follows);
  }

  isRequired(peer: Peer | undefined): boolean {
    return peer !== undefined && peer.standing !== 'joins';
  }

  /** Whether a new record may be made. */
  admits(): boolean {
    return this.serving && !this.paused && this.#inSync >= this.#minInSync;
  }

  commit(): void {
    let to = this.#inSync >= this.#minInSync ? this.log.length : Math.min(this.log.length, this.inherited);
    for (const peer of this.peers.values()) if (this.isRequired(peer)) to = Math.min(to, peer.prepared);
    const early = this.#diskIn !== this.config && (this.#inSync > 1 || this.#alone);
    if (to > this.committed && early) this.logged();
    else if (to > this.committed) this.sync();
    this.committed = Math.max(this.committed, to);
  }

  /** Before it asks for a copy to be removed: what it has answered, and what it does in this config, is on its disk. */
  relyOnDisk(): void {
    this.#diskIn = this.config;
    this.sync();
  }

  /** Until when the owner may grant and answer. */
  rightMs(leaderMs: number): number {
    let until = leaderMs;
    for (const peer of this.peers.values()) if (this.isRequired(peer)) until = Math.min(until, peer.leaseMs);
    return until;
  }

  #count(set: CopySet, policy: Policy): void {
    this.config = set.config;
    this.#alone = policy.replicas === 1;
    this.#minInSync = policy.minInSync;
    this.#inSync = inSync(set.copies);
  }
}
