/** A server of the simulation of copies: its metadata, applied when it likes, its tables, and what it proposes. */
import type { Command } from '../../../core/metadata/commands.js';
import { heirNamed, inSync, isMarked, isWhole, policyOf } from '../../../core/metadata/copy-sets.js';
import { MetadataMachine } from '../../../core/metadata/machine.js';
import type { Copy, CopySet, MetadataState, Shard } from '../../../core/metadata/state.js';
import type { Random } from '../../support/random.js';
import { newPeer, Table, type OnDisk, type Peer } from './table.js';

/** Mechanisms of owners, backups and leaders that can be left out, to see that the check finds it. */
export const COPY_MISTAKES = [
  'owners let a copy go before its removal is applied',
  'owners give up an addition that may still come',
  'owners ask for a copy before they wait for it',
  'owners add copies under long leases of clients',
  'owners call every copy whole',
  'new owners serve before the leases that they gave have ended',
  'leaders do not wait for the leases of earlier starts',
  'owners hand over while clients rely on them',
  'owners hand over what the heir may lack',
  'owners go on though a handover may still come',
  'durable copies acknowledge what is not on their disks',
  'copies come back as if they had all that they acknowledged',
  'owners let a copy go before their disk has what was answered',
] as const;
export type CopyMistake = (typeof COPY_MISTAKES)[number];

/** A lease of a backup. */
const COPY_LEASE_MS = 60;

/** How often something happens in this history: once in so many chances. */
export interface Mood {
  readonly suspects: number;
  readonly removes: number;
  readonly handsOver: number;
}

/** What a server asks of the world around it. */
export interface Around {
  readonly random: Random;
  readonly mood: Mood;
  readonly mistake: CopyMistake | undefined;
  nowMs: () => number;
  name: () => string;
  /** Perhaps late, perhaps never. */
  propose: (from: Server, command: Command) => void;
  server: (id: string) => Server | undefined;
  linked: (a: string, b: string) => boolean;
  /** Clients may go on reading it until then, though its process has ended or it belongs to another shard's life. */
  leave: (shard: number, table: Table) => void;
  /** This copy's process has ended, and its disk may lack what it had acknowledged. */
  crashed: (copy: string) => void;
  log: readonly Uint8Array[];
}

export class Server {
  readonly machine = new MetadataMachine();
  readonly tables = new Map<number, Table>();
  /** By shard: the name of a copy that it is to make. */
  readonly anew = new Map<number, string>();
  /** By shard: what is on its disk while it does not run. */
  readonly disks = new Map<number, OnDisk>();
  alive = false;
  start = '';
  applied = 0;
  /** The lease that the leader has granted, and one that holds when the log is applied so far. */
  leaseUntilMs = -Infinity;
  /** Since when it has one without a gap. */
  grant: { readonly index: number; readonly untilMs: number } | undefined;
  /** It acknowledges what its disk does not have yet. */
  early = false;
  /** What a start has to know: the one before did so, and did not end in order, or the metadata was not told of it. */
  #marks = false;
  #found = false;
  /** Leases that clients had of an earlier process have ended by then. */
  #servesAtMs = -Infinity;

  constructor(
    readonly id: string,
    private readonly around: Around,
  ) {}

  get state(): MetadataState {
    return this.machine.state;
  }

  /** The metadata knows this start. */
  get joined(): boolean {
    return this.state.members.get(this.id)?.incarnation === this.start;
  }

  begin(servesAtMs: number): void {
    this.alive = true;
    this.start = this.around.name();
    this.#found = this.#marks;
    this.#marks ||= this.early;
    this.#servesAtMs = servesAtMs;
    for (const [shard, disk] of this.disks) {
      const table = Table.from(disk);
      table.early = this.early;
      table.grantedUntilMs = this.around.nowMs() + COPY_LEASE_MS;
      this.tables.set(shard, table);
    }
    this.disks.clear();
    this.join();
  }

  /** In order: all that was acknowledged is on the disk. */
  end(inOrder = false): void {
    if (this.joined) this.#marks = this.early;
    if (inOrder && this.joined) this.#marks = false;
    for (const [shard, table] of this.tables) {
      if (inOrder) table.sync();
      else this.around.crashed(table.id);
      this.around.leave(shard, table);
      if (table.disk !== undefined) this.disks.set(shard, this.#left(table, table.disk));
    }
    this.tables.clear();
    this.alive = false;
    this.leaseUntilMs = -Infinity;
    this.grant = undefined;
  }

  /** Some of what was written and not synced may be there. */
  #left(table: Table, disk: OnDisk): OnDisk {
    if (table.epoch !== disk.epoch) return disk;
    const more = this.around.random.below(table.log.length - disk.log.length + 1);
    return { ...disk, log: table.log.slice(0, disk.log.length + more) };
  }

  join(): void {
    const replaces = this.state.members.get(this.id)?.incarnation;
    const recovered = [...this.tables].flatMap(([shard, { id: copy, epoch, log, durable }]) =>
      durable ? [{ shard, copy, worker: 0, epoch, lsn: log.length, ...this.#told() }] : [],
    );
    this.around.propose(this, {
      t: 'member-join',
      id: this.id,
      incarnation: this.start,
      ...(replaces === undefined ? {} : { replaces }),
      instance: '0'.repeat(14) + this.id.replace('s', '0'),
      control: [`${this.id}.example:7400`],
      fabric: [{ provider: 'tcp', address: '127.0.0.1:7500', worker: 0 }],
      memoryBytes: 2 ** 30,
      ...(recovered.length === 0 ? {} : { recovered }),
    });
  }

  #told(): { early?: true } {
    const isTold = this.around.mistake !== 'copies come back as if they had all that they acknowledged';
    return this.#found && isTold ? { early: true } : {};
  }

  /** What is on the disk of a server that acknowledges before that. */
  writes(): void {
    for (const table of this.tables.values()) if (table.early && this.around.random.below(8) === 0) table.sync();
  }

  /** A copy that came back follows nobody before its server knows what the metadata has made of it. */
  follows(shard: number, { id }: Table): boolean {
    if (!this.early) return true;
    const copy = this.state.copySets[shard]?.copies.find((c) => c.id === id);
    return this.joined && !(copy !== undefined && isMarked(copy));
  }

  // ---- what the metadata says

  apply(upTo: number): void {
    while (this.applied < upTo) {
      const before = this.state;
      const bytes = this.around.log[this.applied++];
      if (bytes === undefined) return;
      this.machine.apply(bytes);
      if (this.state === before || !this.alive) continue;
      for (const s of this.state.shards) {
        const set = this.state.copySets[s.shard];
        if (set !== undefined && (set !== before.copySets[s.shard] || s !== before.shards[s.shard]))
          this.#heard(s, set);
      }
    }
    if (this.grant !== undefined && this.applied >= this.grant.index) {
      this.leaseUntilMs = Math.max(this.leaseUntilMs, this.grant.untilMs);
      this.grant = undefined;
    }
  }

  #heard(s: Shard, set: CopySet): void {
    const table = this.tables.get(s.shard);
    const owns = s.owner === this.id && this.joined;
    const policy = policyOf(this.state, s.shard);
    if (table?.role === 'owner' && owns && s.epoch === table.epoch) {
      if (set.config <= table.config) return;
      table.paused = false;
      table.configure(set, policy);
      return;
    }
    if (table?.role === 'owner') table.stepDown();
    if (table !== undefined) table.withheld = false;
    if (!owns) return;
    const own = set.copies.find((c) => c.member === this.id && c.start === this.start && isWhole(c));
    if (own !== undefined && table !== undefined && own.id === table.id) {
      table.lead(s.epoch, set, policy);
      if (s.incarnation === undefined) this.#open(s, this.around.name());
    } else if (own === undefined && s.incarnation === undefined) {
      if (table !== undefined) this.around.leave(s.shard, table);
      const fresh = new Table(this.around.name(), s.epoch);
      fresh.durable = policy.level === 'durable';
      fresh.early = fresh.durable && this.early;
      this.tables.set(s.shard, fresh);
      fresh.lead(s.epoch, set, policy);
      this.#open(s, fresh.id);
    }
  }

  #open(s: Shard, incarnation: string): void {
    const { shard, epoch } = s;
    const open = { layoutEpoch: 1, buckets: 64, regions: [] };
    const start = this.start;
    this.around.propose(this, {
      t: 'shard-opened',
      ...{ shard, owner: this.id, memberIncarnation: start, epoch, incarnation, ...open },
    });
  }

  // ---- an owner

  owned(): [Shard, Table][] {
    return [...this.tables].flatMap(([shard, table]): [Shard, Table][] => {
      const s = this.state.shards[shard];
      return table.role === 'owner' && s !== undefined ? [[s, table]] : [];
    });
  }

  rightMs(table: Table): number {
    return table.rightMs(this.leaseUntilMs);
  }

  own(s: Shard, table: Table): void {
    const { random } = this.around;
    const now = this.around.nowMs();
    const copies = this.state.copySets[s.shard]?.copies ?? [];
    const isNamed = copies.some((c) => c.id === table.id && isWhole(c));
    if (this.#mayCount(s, table) && random.below(inSync(copies) > 0 ? 2 : 20) === 0) this.#count(s, table);
    const tookOver =
      table.tookOver &&
      (now >= table.grantedUntilMs ||
        this.around.mistake === 'new owners serve before the leases that they gave have ended');
    if (
      !table.serving &&
      !table.paused &&
      s.incarnation !== undefined &&
      isNamed &&
      tookOver &&
      now >= this.#servesAtMs
    )
      table.serving = true;
    switch (random.below(8)) {
      case 0:
      case 1: {
        this.#write(table, now);
        return;
      }
      case 2:
      case 3:
      case 4: {
        this.#exchange(s, table, now);
        return;
      }
      case 5: {
        this.#add(s, table, now);
        return;
      }
      case 6: {
        this.#remove(s, table);
        return;
      }
      case 7: {
        this.#handOver(s, table, now);
        return;
      }
    }
  }

  /** It was opened empty and never served, and nobody may be relied on for what was there before. */
  #mayCount(s: Shard, table: Table): boolean {
    const own = this.state.copySets[s.shard]?.copies.find((c) => c.id === table.id);
    return own?.state === 'joining' && own.member === s.owner && this.around.nowMs() >= this.#servesAtMs;
  }

  #count(s: Shard, table: Table): void {
    table.sync();
    const about = { member: this.id, start: this.start, copy: table.id, worker: s.worker, lsn: 0 };
    this.around.propose(this, { t: 'copies-in-sync', ...this.#names(s, table), ...about });
  }

  #write(table: Table, now: number): void {
    if (now >= this.rightMs(table)) return;
    for (let i = this.around.random.below(4); i > 0 && table.admits(); i--) {
      table.log.push({ number: Number.parseInt(this.around.name(), 16), epoch: table.epoch });
      table.commit();
    }
    if (table.serving) table.clientsUntilMs = Math.max(table.clientsUntilMs, this.rightMs(table));
  }

  /** The peer's table, if it can be reached and its process is the one that it was. */
  #at(shard: number, peer: Peer): Table | undefined {
    const server = this.around.server(peer.member);
    const table = server?.tables.get(shard);
    if (!this.around.linked(this.id, peer.member)) return undefined;
    if (server?.alive !== true || server.start !== peer.start || table?.id !== peer.id) return undefined;
    return table.role === 'backup' && server.follows(shard, table) ? table : undefined;
  }

  #exchange(s: Shard, table: Table, now: number): void {
    const { random } = this.around;
    for (const peer of table.peers.values()) {
      const backup = this.#at(s.shard, peer);
      if (backup === undefined || backup.damaged || random.below(3) === 0) continue;
      if (this.#missed(table, peer, backup)) table.peers.delete(peer.id);
      if (!backup.follow(table)) continue;
      if (random.below(3) > 0) backup.take(table, 1 + random.below(2));
      if (backup.withheld) continue;
      backup.grantedUntilMs = Math.max(backup.grantedUntilMs, now + COPY_LEASE_MS);
      if (this.around.mistake !== 'durable copies acknowledge what is not on their disks') backup.logged();
      if (random.below(4) === 0) continue;
      peer.follows = true;
      peer.prepared = Math.max(peer.prepared, backup.log.length);
      peer.leaseMs = now + COPY_LEASE_MS;
      table.commit();
    }
  }

  /** It cannot go on: it is to be met anew. */
  #missed(table: Table, { standing }: Peer, backup: Table): boolean {
    return standing === 'joins' && backup.epoch <= table.epoch && !table.goesOn(backup);
  }

  #names(
    s: Shard,
    table: Table,
  ): { shard: number; epoch: number; config: number; owner: string; memberIncarnation: string } {
    const { shard, epoch } = s;
    return { shard, epoch, config: table.config, owner: this.id, memberIncarnation: this.start };
  }

  #add(s: Shard, table: Table, now: number): void {
    if (!table.serving && !this.#mayCount(s, table)) return;
    const { mistake, random } = this.around;
    for (const copy of this.state.copySets[s.shard]?.copies ?? []) this.#meet(s, table, copy);
    for (const peer of table.peers.values()) {
      if (peer.standing === 'in-sync') continue;
      if (peer.standing === 'joins' && !peer.follows) continue;
      if (peer.standing === 'joins' && mistake !== 'owners ask for a copy before they wait for it') {
        peer.standing = 'required';
        peer.settledMs = mistake === 'owners add copies under long leases of clients' ? now : table.clientsUntilMs;
      } else if (peer.standing === 'proposed') {
        if (mistake === 'owners give up an addition that may still come') peer.standing = 'joins';
        else if (random.below(8) === 0) this.around.propose(this, { t: 'copies-keep', ...this.#names(s, table) });
      } else if (peer.prepared >= table.committed && now >= peer.settledMs) {
        const { member, start, id } = peer;
        if (peer.standing === 'required') peer.standing = 'proposed';
        const about = { member, start, copy: id, worker: 0, lsn: table.committed };
        this.around.propose(this, { t: 'copies-in-sync', ...this.#names(s, table), ...about });
      }
    }
  }

  /** A copy that is to be in sync: it becomes the owner's table, or goes on with its own if it is eligible. */
  #meet(s: Shard, table: Table, { member, start, state, id }: Copy): void {
    const server = this.around.server(member);
    const isKnown = [...table.peers.values()].some((p) => p.member === member && p.start === start);
    if (member === this.id || state === 'in-sync' || isKnown || server?.alive !== true || server.start !== start)
      return;
    if (!this.around.linked(this.id, member)) return;
    const present = server.tables.get(s.shard);
    if (state === 'eligible') {
      if (id !== undefined && present?.id === id) table.peers.set(id, newPeer(member, start, id, 'joins'));
      return;
    }
    if (present?.role === 'owner' || (present !== undefined && present.epoch > table.epoch)) return;
    // What the metadata names is another table, which this owner does not know: it begins anew under another name.
    if (id !== undefined && id !== server.anew.get(s.shard)) {
      const [name, { shard, epoch, config }] = [this.around.name(), this.#names(s, table)];
      server.anew.set(shard, name);
      this.around.propose(server, { t: 'copy-named', shard, epoch, config, member, start, copy: name, worker: 0 });
      return;
    }
    if (present !== undefined) this.around.leave(s.shard, present);
    server.anew.delete(s.shard);
    const copy = new Table(id ?? this.around.name(), table.epoch, table.log.slice(0, table.committed));
    copy.grantedUntilMs = present?.grantedUntilMs ?? -Infinity;
    copy.durable = table.durable;
    copy.early = copy.durable && server.early;
    server.tables.set(s.shard, copy);
    table.peers.set(copy.id, newPeer(member, start, copy.id, 'joins'));
  }

  #remove(s: Shard, table: Table): void {
    const { random, mistake, mood } = this.around;
    const relies = (): void => {
      if (mistake !== 'owners let a copy go before their disk has what was answered') table.relyOnDisk();
    };
    const marked = this.state.copySets[s.shard]?.copies.find((c) => isMarked(c) && c.member !== this.id);
    if (marked !== undefined) {
      const { owner, memberIncarnation, ...name } = this.#names(s, table);
      relies();
      const removed = { ...name, member: marked.member, start: marked.start, whole: random.below(2) === 0, lsn: 0 };
      this.around.propose(this, { t: 'copies-removed', by: { owner, memberIncarnation }, copies: [removed] });
      return;
    }
    for (const peer of table.peers.values()) {
      const isThere = this.#at(s.shard, peer) !== undefined;
      if (random.below(isThere ? mood.removes : 4) > 0) continue;
      const { member, start } = peer;
      const whole = peer.prepared >= table.inherited || mistake === 'owners call every copy whole';
      const { owner, memberIncarnation, ...name } = this.#names(s, table);
      relies();
      const removed = { ...name, member, start, whole, lsn: table.committed };
      this.around.propose(this, { t: 'copies-removed', by: { owner, memberIncarnation }, copies: [removed] });
      if (mistake === 'owners let a copy go before its removal is applied') {
        table.peers.delete(peer.id);
        table.commit();
      }
      return;
    }
  }

  /** Until its config is one of the past it takes no changes, and nobody relies on it. */
  #handOver(s: Shard, table: Table, now: number): void {
    const { mistake, random, mood } = this.around;
    if (!table.paused) {
      const isDrained = this.state.servers.some(({ id, draining }) => id === this.id && draining);
      const isWanted = isDrained || heirNamed(this.state, s.shard) !== undefined;
      const isDue = random.below(isWanted ? 2 : mood.handsOver) === 0 && table.peers.size > 0;
      if (!table.serving || !isDue) return;
      table.paused = true;
      table.serving = false;
      return;
    }
    if (now < table.clientsUntilMs && mistake !== 'owners hand over while clients rely on them') return;
    const lacks = mistake === 'owners hand over what the heir may lack';
    const to = heirNamed(this.state, s.shard);
    const heir = [...table.peers.values()].find(
      (p) =>
        p.standing === 'in-sync' && (lacks || p.prepared === table.log.length) && (to === undefined || p.member === to),
    );
    const command: Command =
      heir === undefined || (!lacks && table.committed < table.log.length)
        ? { t: 'copies-keep', ...this.#names(s, table) }
        : {
            t: 'shard-handover',
            ...this.#names(s, table),
            ...{ to: heir.member, copy: heir.id, incarnation: this.around.name(), ends: random.below(2) === 0 },
          };
    if (random.below(4) > 0) return;
    this.around.propose(this, command);
    if (mistake !== 'owners go on though a handover may still come') return;
    table.paused = false;
    table.serving = true;
  }

  // ---- a backup

  /** By its own member's word, however few others there are. */
  #renounce({ shard, epoch }: Shard, { config }: CopySet, { member, start }: Copy): void {
    const removed = { shard, epoch, config, member, start, whole: false, damaged: true, lsn: 0 } as const;
    this.around.propose(this, { t: 'copies-removed', copies: [removed] });
  }

  suspect(): void {
    const { random, mood } = this.around;
    for (const [shard, table] of this.tables) {
      const s = this.state.shards[shard];
      const set = this.state.copySets[shard];
      const own = set?.copies.find((c) => c.id === table.id && c.start === this.start);
      // An eligible one asks too: it is to be refused.
      if (s === undefined || set === undefined || own === undefined || table.role === 'owner') continue;
      if (table.damaged) {
        this.#renounce(s, set, own);
        continue;
      }
      const owner = s.owner === undefined ? undefined : this.around.server(s.owner);
      const hears = owner?.alive === true && this.around.linked(this.id, owner.id);
      if (random.below(hears ? mood.suspects : 4) > 0) continue;
      table.withheld = true;
      const incarnation = this.around.name();
      const name = { shard, epoch: s.epoch, config: set.config, copy: table.id, incarnation };
      this.around.propose(this, {
        t: 'shards-promoted',
        id: this.id,
        memberIncarnation: this.start,
        shards: [{ ...name, lsn: table.committed }],
      });
    }
  }
}
