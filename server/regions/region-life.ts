/**
 * The life of this server's shards: what the metadata gives to it is opened in the data plane, told to the metadata, and served;
 * what the metadata takes away is closed.
 *
 *     assigned (owner = this server, epoch E)
 *        -> openShard(E, a random incarnation)      memory is allocated and registered; nothing is answered
 *        -> shard-opened is applied                 the metadata knows the regions, for this epoch and no other
 *        -> the leases of the last run are over     nobody reads the regions that were there before
 *        -> serveShard                              leases are granted, PUTs are taken
 *
 * What the metadata says is to move (farkv shard move, drain) is given up here, when its next owner has copied it (arrival.ts):
 *
 *     a move of the shard is in the metadata        the next owner copies it, while all goes on as usual
 *        -> shard-copy `last` is applied            all was copied once
 *        -> setLeaseMs (short-leases.ts)            shorter leases; wait until the last longer one is over, while all goes on as usual
 *        -> sealShard                               no more changes are taken; reads go on. Not longer than SEALED_MS: then the move is called off
 *        -> shard-copy `copied` is applied          the next owner has all there is; nothing calls the move off any more
 *        -> pauseShard                              nothing is answered or granted; done when every lease on it is over
 *        -> shard-released is applied               nobody serves it
 *        -> the next owner's shard-opened           the other server owns it, under the next epoch; closeShard
 *
 * If the move is called off before that, which a lost copy does at the latest, the shard is served again as it is and nothing has happened.
 *
 * Order matters: a shard is opened only under an epoch that the metadata gave to this start of the server, so versions never repeat;
 * and it is served only when no reader of an older epoch is left, so nobody sees the old value after the new one.
 */
import type { DataPlane, ShardLayout } from '../../native/addon.js';
import { FarkvError } from '../../core/errors.js';
import type { Command } from '../../core/metadata/commands.js';
import { groupsOf } from '../../core/metadata/placement.js';
import type { MetadataState, Shard } from '../../core/metadata/state.js';
import { describeError, type Log } from '../log.js';
import type { Outcome } from '../metadata/proposer.js';
import { addressesOf, Arrival, hex64, isGiven } from './arrival.js';
import { ChangedShards } from './changed-shards.js';
import { Fence } from './fence.js';
import { layoutDelta, regionOf } from './layout-delta.js';
import { MoveTroubles, type MoveTrouble } from './move-troubles.js';
import { ownShard, type OwnShard } from './own-shard.js';
import { ShortLeases } from './short-leases.js';

export interface RegionLifeOptions {
  readonly memberId: string;
  /** Of this start of the server, hex. */
  readonly incarnation: string;
  readonly memoryBytes: number;
  /** The least that a shard needs. */
  readonly shardMemoryMin: number;
  readonly dataPlane: Pick<DataPlane, 'openShard' | 'serveShard' | 'closeShard' | 'layout' | 'stats' | 'setLeaseMs' | 'sealShard' | 'pauseShard' | 'copyShard' | 'finishCopy' | 'stopCopy'>;
  /** By what other owners can be reached from here. */
  readonly here: { readonly providers: readonly string[]; readonly host: string | undefined };
  /** Of what is granted to clients, and how much longer the last of them may be relied on. */
  readonly leaseMs: number;
  readonly leaseOverMs: number;
  readonly state: () => MetadataState;
  readonly propose: (command: Command, timeoutMs: number) => Promise<Outcome>;
  /** Resolves when the leases of the last run are over. */
  readonly leasesOver: Promise<void>;
  /** Called before the first shard is served: what is granted from now on must be waited for by the next start. */
  readonly beforeServing: () => void;
  /** 64 random bits. */
  readonly random64: () => bigint;
  readonly sleep: (ms: number) => Promise<void>;
  readonly log: Log;
  /** This server must not go on. */
  readonly fatal: (error: FarkvError) => void;
}

/** The last part of a copy is what changed meanwhile: a second of changes at most. Clients ask again for so long, and longer. */
const SEALED_MS = 3000;
const PROPOSE_MS = 60_000;
/** What did not fit is not tried again for so long, though somebody plans it anew, such as the leader for a server that is drained. */
const NO_ROOM_MS = 10_000;
const LOOK_AGAIN_MS = 100;
/**
 * A table that fills asks for many segments a second. Each change that is told is written by every server and sent to every client, with
 * all regions of the shard; and nobody waits for it, since an owner tells its layout to whoever asks.
 */
const TELL_PAUSE_MS = 250;

export class RegionLife {
  readonly #options: RegionLifeOptions;
  readonly #own = new Map<number, OwnShard>();
  /** By shard: what is copied to here. */
  readonly #arrivals = new Map<number, Arrival>();
  /** Shards that there was no memory for a moment ago. */
  readonly #noRoom = new Set<number>();
  /** Shards whose moves to here are being called off. */
  readonly #staying = new Set<number>();
  readonly #waiters: (() => void)[] = [];
  readonly #changed = new ChangedShards();
  #marked = false;
  #closing = false;
  /** Of the last run. */
  #leasesOver = false;
  readonly #fence: Fence;
  readonly #shortLeases: ShortLeases;
  readonly #troubles = new MoveTroubles();

  constructor(options: RegionLifeOptions) {
    this.#options = options;
    this.#fence = new Fence(() => options.dataPlane.stats());
    this.#shortLeases = new ShortLeases(options);
    void options.leasesOver.then(() => (this.#leasesOver = true));
  }

  /** To be called after this server's join was applied, and whenever the metadata changed since. */
  stateChanged(): void {
    if (this.#closing) return;
    const state = this.#options.state();
    const mine = state.members.get(this.#options.memberId)?.incarnation === this.#options.incarnation;
    const changed = this.#changed.since(state);
    for (const { shard } of changed) {
      const own = this.#own.get(shard);
      if (own !== undefined && (!mine || this.#current(own) === undefined)) this.#abandon(own);
    }
    if (!mine) return;
    for (const { shard } of state.moves) {
      const own = this.#own.get(shard);
      // What is to be copied is served first.
      if (own?.serving === true) void this.#release(own);
    }
    this.#arrive(state);
    const fresh = changed.filter((s) => s.owner === this.#options.memberId && !this.#own.has(s.shard) && !this.#arrivals.has(s.shard));
    if (fresh.length > 0) this.#openAll(fresh);
    this.#wake();
  }

  /** Every shard that the metadata gives to this server is served. */
  get settled(): boolean {
    const { shards } = this.#options.state();
    return shards.every((s) => s.owner !== this.#options.memberId || (this.#own.get(s.shard)?.serving === true && this.#own.get(s.shard)?.epoch === s.epoch));
  }

  /** Resolves when `condition` holds; it is looked at after every change here. Rejects with ERR_CLOSED after close(). */
  async until(condition: () => boolean): Promise<void> {
    while (!condition()) {
      if (this.#closing) throw new FarkvError('ERR_CLOSED', 'the server is closing');
      await new Promise<void>((resolve) => this.#waiters.push(resolve));
    }
  }

  /** Numbers of the shards that are served. */
  get serving(): number[] {
    return [...this.#own.values()].filter((own) => own.serving).map((own) => own.shard).sort((a, b) => a - b);
  }

  /** What is in the way of shards that move from or to here. */
  get moveTroubles(): MoveTrouble[] {
    return this.#troubles.list(this.#options.state());
  }

  /** The data plane says that a shard's segments changed. */
  layoutChanged(shard: number): void {
    const own = this.#own.get(shard);
    if (own === undefined || this.#closing) return;
    own.dirty = true;
    void this.#tell(own);
  }

  /** Resolves when the data plane has stopped answering for every shard that was taken away by now. */
  fence(): Promise<void> {
    return this.#fence.pass();
  }

  /**
   * Stops answering and waits until every granted lease is over. False when that was not certain within the time, or those of the last run
   * are not over yet: for them there is nothing to be told that they are.
   */
  async close(timeoutMs: number): Promise<boolean> {
    this.#closing = true;
    for (const arrival of this.#arrivals.values()) arrival.cancel();
    this.#wake();
    const closed = Promise.all([...this.#own.values()].filter((own) => own.opened).map((own) => this.#close(own))).then(
      () => this.#leasesOver,
      (error: unknown) => {
        this.#options.log.warn(`closing the shards failed: ${describeError(error)}`);
        return false;
      },
    );
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<boolean>((resolve) => (timer = setTimeout(() => resolve(false), timeoutMs)));
    const result = await Promise.race([closed, late]);
    clearTimeout(timer);
    return result;
  }

  #wake(): void {
    for (const wake of this.#waiters.splice(0)) wake();
  }

  #openAll(shards: readonly Shard[]): void {
    const { memoryBytes, shardMemoryMin, fatal, random64, log } = this.#options;
    // A limit for each, not a share: shards that come later are not refused because of those that were first. What all of them take
    // together the data plane bounds.
    const each = Math.max(shardMemoryMin, Math.floor(memoryBytes / (this.#own.size + shards.length)));
    for (const s of shards) {
      if (this.#options.state().moves.some((m) => m.shard === s.shard && m.phase === 'released')) log.warn(`the copy of shard ${s.shard} is lost: it comes up empty`);
      const own = ownShard({ shard: s.shard, epoch: s.epoch, incarnation: random64(), memoryBytes: each });
      this.#own.set(s.shard, own);
      this.#open(own, s.group).catch((error: unknown) => {
        if (this.#closing || own.abandoned) return;
        fatal(error instanceof FarkvError ? error : new FarkvError('ERR_INTERNAL', `shard ${own.shard} cannot be opened: ${describeError(error)}`, { cause: error }));
      });
    }
  }

  async #open(own: OwnShard, group: number): Promise<void> {
    const { dataPlane } = this.#options;
    const opening = dataPlane.openShard({ shard: own.shard, group, epoch: own.epoch, incarnation: own.incarnation, memoryBytes: own.memoryBytes });
    own.opening = opening.catch(() => undefined);
    const layout = await opening;
    await this.#serve(own, layout);
  }

  async #serve(own: OwnShard, layout: ShardLayout): Promise<void> {
    const { dataPlane, leasesOver, beforeServing, log } = this.#options;
    own.opened = true;
    if (!(await this.#announce(own, layout))) return;
    await leasesOver;
    if (own.abandoned || own.releasing || this.#closing) return;
    if (!this.#marked) {
      beforeServing();
      this.#marked = true;
    }
    await dataPlane.serveShard(own.shard);
    own.serving = true;
    log.debug(`shard ${own.shard} is served in epoch ${own.epoch}`);
    // It may be to move already.
    this.stateChanged();
    // Segments may have come between the layout that was announced and now.
    own.dirty = true;
    await this.#tell(own);
  }

  /** The metadata's idea of the shard, while it is still this server's in this epoch, or its own to open with a copy. */
  #current(own: OwnShard): Shard | undefined {
    const { state, memberId } = this.#options;
    const s = state().shards[own.shard];
    const held = (s?.owner === memberId && s.epoch === own.epoch) || isGiven(state(), own.shard, memberId, own.incarnation);
    return own.abandoned || this.#closing || !held ? undefined : s;
  }

  /** True when the metadata has this server's regions. */
  async #announce(own: OwnShard, layout: ShardLayout): Promise<boolean> {
    const { memberId, incarnation } = this.#options;
    for (;;) {
      const s = this.#current(own);
      if (s === undefined) return false;
      if (s.owner === memberId && s.incarnation !== undefined) return s.incarnation === hex64(own.incarnation);
      await this.#propose({
        t: 'shard-opened', shard: own.shard, owner: memberId, memberIncarnation: incarnation, epoch: own.epoch,
        incarnation: hex64(own.incarnation), layoutEpoch: layout.layoutEpoch, buckets: layout.buckets, regions: layout.regions.map(regionOf),
      });
    }
  }

  /** Tells the metadata what changed, one change at a time; what changes meanwhile, and in the pause after each, is told together. */
  async #tell(own: OwnShard): Promise<void> {
    if (own.telling) return;
    own.telling = true;
    try {
      while (own.dirty) {
        const known = this.#current(own);
        if (known?.incarnation === undefined || known.incarnation !== hex64(own.incarnation)) return;
        own.dirty = false;
        const layout = await this.#options.dataPlane.layout(own.shard);
        if (layout.layoutEpoch === known.layoutEpoch) continue;
        const outcome = await this.#propose(layoutDelta(known, layout));
        // Refused or unknown: the difference is taken anew from what the metadata has now.
        if (outcome !== 'applied') own.dirty = true;
        await this.#options.sleep(TELL_PAUSE_MS);
      }
    } catch (error) {
      if (!this.#closing && !own.abandoned) this.#options.log.warn(`the layout of shard ${own.shard} could not be told: ${describeError(error)}`);
    } finally {
      own.telling = false;
    }
  }

  async #propose(command: Command): Promise<'applied' | 'look again'> {
    try {
      const outcome = await this.#options.propose(command, PROPOSE_MS);
      if (outcome !== 'unknown' && outcome.ok) return 'applied';
      if (outcome !== 'unknown') this.#options.log.debug(`${command.t} was refused: ${outcome.message}`);
    } catch (error) {
      // Without a leader for so long, the change stays to be made.
      if (!(error instanceof FarkvError && error.code === 'ERR_TIMEOUT')) throw error;
    }
    await this.#options.sleep(LOOK_AGAIN_MS);
    return 'look again';
  }

  /** The shard is no longer this server's in this epoch: it stops answering, then its memory goes. */
  #abandon(own: OwnShard): void {
    if (own.abandoned) return;
    own.abandoned = true;
    own.serving = false;
    if (!own.releasing) this.#options.log.warn(`shard ${own.shard} is no longer this server's in epoch ${own.epoch}`);
    this.#close(own)
      .catch((error: unknown) => this.#options.log.warn(`closing shard ${own.shard} failed: ${describeError(error)}`))
      .finally(() => {
        this.#own.delete(own.shard);
        this.#changed.again(own.shard);
        this.#shortLeases.done(own);
        // It may have been given to this server again under a newer epoch.
        this.stateChanged();
      });
  }

  /** Once for each shard. Where the shard is open it is told to the data plane before this returns. */
  #close(own: OwnShard): Promise<void> {
    if (own.closing === undefined) {
      if (own.opened) this.#fence.raise();
      own.closing = own.opened ? this.#options.dataPlane.closeShard(own.shard) : own.opening.then(() => (own.opened ? this.#options.dataPlane.closeShard(own.shard) : undefined));
    }
    return own.closing;
  }

  /** Resolves when the shard can be given up, or the move was called off. */
  async #ready(own: OwnShard): Promise<'called off' | 'copied'> {
    const { state, memberId, dataPlane, sleep, log } = this.#options;
    const { to, planned } = state().moves.find((m) => m.shard === own.shard) ?? {};
    // Called off and planned anew it is another one, for another copy.
    const move = () => (this.#current(own) === undefined ? undefined : state().moves.find((m) => m.shard === own.shard && m.to === to && m.planned === planned));
    await this.until(() => move() === undefined || move()?.phase !== undefined);
    if (move() === undefined) return 'called off';
    await this.#shortLeases.begin(own);
    if (move() === undefined) return 'called off';
    await dataPlane.sealShard(own.shard, BigInt(`0x${move()?.copy ?? '0'}`));
    const decided = this.until(() => move()?.phase !== 'last');
    for (let late = false; move()?.phase === 'last';) {
      if (late) {
        const reason = `its last part was not copied within ${SEALED_MS} ms after it took no more changes`;
        log.warn(`the move of shard ${own.shard} to ${to ?? ''} is called off, and it stays: ${reason}`);
        this.#troubles.note({ shard: own.shard, from: memberId, to: to ?? '', epoch: own.epoch, attempts: 1, reason, calledOff: true });
        await this.#propose({ t: 'shard-move', shard: own.shard, epoch: own.epoch, to: memberId });
      }
      late = await Promise.race([decided.then(() => false), sleep(late ? LOOK_AGAIN_MS : SEALED_MS).then(() => true)]);
    }
    await decided;
    if (move()?.phase === 'copied') return 'copied';
    if (this.#current(own) !== undefined) await dataPlane.sealShard(own.shard, 0n);
    return 'called off';
  }

  /** Begins to copy what moves to here, and takes over what has come. */
  #arrive(state: MetadataState): void {
    const { memberId, incarnation, memoryBytes, shardMemoryMin, dataPlane, random64, sleep, log, here } = this.#options;
    const me = state.members.get(memberId);
    for (const arrival of this.#arrivals.values()) arrival.stateChanged();
    for (const { shard, to, planned, phase } of state.moves) {
      const s = state.shards[shard];
      if (to !== memberId || me?.incarnation !== incarnation || s?.owner === undefined) continue;
      if (phase !== undefined && s.owner !== memberId && !this.#arrivals.has(shard) && !this.#own.has(shard)) {
        this.#stay(shard, s);
        continue;
      }
      if (phase !== undefined || s.incarnation === undefined || s.owner === memberId || this.#arrivals.has(shard) || this.#own.has(shard) || this.#noRoom.has(shard)) continue;
      const held = this.#own.size + this.#arrivals.size;
      this.#troubles.clear(shard);
      const arrival = new Arrival({
        shard, epoch: s.epoch, planned, group: held % groupsOf(me), incarnation: random64(), memoryBytes: Math.max(shardMemoryMin, Math.floor(memoryBytes / (held + 1))),
        memberId, memberIncarnation: incarnation, dataPlane, state: this.#options.state, propose: (command) => this.#propose(command),
        addressesOf: (of) => addressesOf(this.#options.state(), of, here), trouble: (trouble) => this.#troubles.note({ ...trouble, to: memberId }), sleep, log,
      });
      this.#arrivals.set(shard, arrival);
      arrival.ended.then((complete) => (complete ? this.#arrived(shard, arrival) : undefined)).catch((error: unknown) => {
        if (!this.#closing) log.warn(`shard ${shard} did not come: ${describeError(error)}`);
      }).finally(() => {
        this.#arrivals.delete(shard);
        this.#changed.again(shard);
        if (arrival.full) this.#rest(shard);
        this.stateChanged();
      });
    }
  }

  #rest(shard: number): void {
    this.#noRoom.add(shard);
    void this.#options.sleep(NO_ROOM_MS).then(() => {
      this.#noRoom.delete(shard);
      this.stateChanged();
    });
  }

  /** What was copied is not here any more: its owner, which has it all, is to keep it. */
  #stay(shard: number, { epoch, owner }: Shard): void {
    const { incarnation } = this.#options;
    if (owner === undefined || this.#staying.has(shard)) return;
    this.#staying.add(shard);
    void this.#propose({ t: 'shard-move', shard, epoch, to: owner, lost: incarnation })
      .catch((error: unknown) => this.#options.log.debug(`the copy of shard ${shard} is lost: ${describeError(error)}`))
      .finally(() => {
        this.#staying.delete(shard);
        this.stateChanged();
      });
  }

  /** Its last owner's values are here. When it gives the shard up they are served; should it have started again instead, they are of no use. */
  async #arrived(shard: number, arrival: Arrival): Promise<void> {
    const { state, dataPlane, fatal, log } = this.#options;
    const { epoch, incarnation, memoryBytes } = arrival;
    await this.until(() => arrival.given || !state().moves.some((m) => m.shard === shard && m.phase === 'copied' && m.copy === hex64(incarnation)));
    if (!arrival.given) {
      await dataPlane.closeShard(shard);
      return;
    }
    const own: OwnShard = { ...ownShard({ shard, epoch, incarnation, memoryBytes }), opened: true };
    this.#own.set(shard, own);
    log.info(`shard ${shard} is this server's in epoch ${epoch}, with the values of its last owner`);
    this.#serve(own, await dataPlane.layout(shard)).catch((error: unknown) => {
      if (this.#closing || own.abandoned) return;
      fatal(error instanceof FarkvError ? error : new FarkvError('ERR_INTERNAL', `shard ${shard} cannot be served: ${describeError(error)}`, { cause: error }));
    });
  }

  #goOn(own: OwnShard): void {
    own.releasing = false;
    this.#shortLeases.done(own);
    this.stateChanged();
  }

  /** For a copy: it is served by nobody until its next owner opens it, or, when the copy is lost, by this server again. */
  async #giveUp(own: OwnShard): Promise<void> {
    const { memberId, incarnation, state, dataPlane, leasesOver, log } = this.#options;
    const { shard, epoch } = own;
    const move = state().moves.find((m) => m.shard === shard);
    if (move?.copy === undefined) throw new FarkvError('ERR_INTERNAL', 'there is no copy to give it up for');
    const { copy, to } = move;
    const stands = (): boolean => this.#current(own) !== undefined && state().moves.some((m) => m.shard === shard && m.copy === copy);
    const said = (): boolean => state().moves.some((m) => m.shard === shard && m.copy === copy && m.phase === 'released');
    own.serving = false;
    this.#fence.raise();
    await dataPlane.pauseShard(shard);
    // Of the last run some may still be relied on though this start has granted none.
    await leasesOver;
    while (stands() && !said()) await this.#propose({ t: 'shard-released', shard, owner: memberId, memberIncarnation: incarnation, epoch, copy });
    await this.until(() => !stands());
    // When it is another's, stateChanged() forgets it.
    if (this.#current(own) === undefined) return;
    log.warn(`${to} has lost its copy of shard ${shard}: it stays, with all that is in it`);
    await dataPlane.serveShard(shard);
    if (this.#current(own) === undefined) return;
    await dataPlane.sealShard(shard, 0n);
    if (this.#current(own) === undefined) return;
    own.serving = true;
    this.#goOn(own);
  }

  /** Gives the shard to the server that the metadata names. */
  async #release(own: OwnShard): Promise<void> {
    const { log, fatal } = this.#options;
    if (own.releasing || own.abandoned) return;
    own.releasing = true;
    log.info(`shard ${own.shard} is given to another server`);
    try {
      // Called off in time it has gone on serving.
      if ((await this.#ready(own)) === 'called off') this.#goOn(own);
      else await this.#giveUp(own);
    } catch (error) {
      if (this.#closing || this.#current(own) === undefined) return;
      fatal(new FarkvError('ERR_INTERNAL', `shard ${own.shard} cannot be given up: ${describeError(error)}`, { cause: error }));
    }
  }
}
