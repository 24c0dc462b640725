/**
 * The data plane of one life of a member, simulated: does what core/shards asks for, late and sometimes in vain, and
 * grants leases to clients as far as it may. Results come late and in any order, but no serve or handover has an effect
 * after a close, pause or step down that was asked for later: the product's threads take their jobs in order. Time is
 * the member's own; what has a time of its own is done when the member's clock ticks, so a member that is paused does
 * nothing.
 */
import type { Command } from '../../core/metadata/commands.js';
import type { MetadataState } from '../../core/metadata/state.js';
import { Shards, type Action, type Request, type Failure } from '../../core/shards/index.js';
import type { Random } from '../support/random.js';
import { Violation } from './checker.js';
import type { CopyTables } from './copy-tables.js';

export interface PlaneOptions {
  readonly memberId: string;
  readonly memberIncarnation: string;
  readonly leaseMs: number;
  readonly random: Random;
  readonly nowMs: () => number;
  readonly random64: () => string;
  readonly metadata: () => MetadataState;
  /** The data plane of an owner that can be reached. */
  readonly planeOf: (id: string, incarnation: string) => Plane | undefined;
  /** `settle` when it was applied or refused, or nothing was heard of it for long. */
  readonly propose: (command: Command, settle: () => void) => void;
  /** Clients may rely on the shard until then, by this member's clock. */
  readonly claim: (shard: number, epoch: number, untilMs: number) => void;
  /** Of shards that have copies (copy-tables.ts), whose contents are checked elsewhere. */
  readonly copies?: CopyTables;
}

interface Served {
  readonly shard: number;
  epoch: number;
  incarnation: string;
  serving: boolean;
  /** Counts close, pause and step down. A serve or a handover asked for before one of them has no effect after it. */
  ends: number;
  /** Until when clients may rely on it, by the member's clock. */
  grantedMs: number;
  /** Its copy is under way: what was promised of it, and who it is copied from. */
  copying:
    | {
        readonly from: () => Served | undefined;
        readonly source: { readonly owner: string; readonly start: string };
        readonly jobs: Set<Job>;
      }
    | undefined;
}

interface Job {
  readonly of: number;
  atMs: number;
  /** 'later': it is looked at again. A number: it is done, with what was committed then. */
  readonly run: () => Failure | undefined | 'later' | number;
}

/** What takes long is made short: leases of a history are a fraction of real ones. */
const WAIT_PART = 1 / 10;
const LATE_MS = 15;

export class Plane {
  readonly shards: Shards;
  readonly #options: PlaneOptions;
  readonly #tables = new Map<number, Served>();
  #jobs: Job[] = [];

  constructor(options: PlaneOptions) {
    const { memberId, memberIncarnation, random64 } = options;
    this.#options = options;
    this.shards = new Shards({ memberId, memberIncarnation, shardMemoryMin: 1, random64 });
  }

  /** The metadata has changed, or the leases of the last run are over. */
  input(input: (shards: Shards) => void): void {
    input(this.shards);
    for (const action of this.shards.take()) this.#do(action);
  }

  /** The member's clock goes on. */
  tick(): void {
    const now = this.#options.nowMs();
    for (const job of this.#jobs.filter((j) => j.atMs <= now)) this.#run(job);
  }

  /** Grants what it may at the most: until its own lease is over, or for as long as leases are. */
  grant(untilMs: number): void {
    const { nowMs, claim, copies, leaseMs } = this.#options;
    for (const table of this.#tables.values()) {
      if (!table.serving) continue;
      const until = Math.min(copies?.rightMs(table.shard, untilMs) ?? untilMs, nowMs() + leaseMs);
      if (until <= nowMs()) continue;
      claim(table.shard, table.epoch, until);
      table.grantedMs = Math.max(table.grantedMs, until);
    }
  }

  /** Until when clients may rely on it, by the member's clock. */
  grantedMs(shard: number): number {
    return this.#tables.get(shard)?.grantedMs ?? -Infinity;
  }

  /** For whoever copies it. */
  tableOf(shard: number): Served | undefined {
    return this.#tables.get(shard);
  }

  #run(job: Job): void {
    if (!this.#jobs.includes(job)) return;
    const failed = job.run();
    if (failed === 'later') {
      job.atMs = this.#options.nowMs() + LATE_MS;
      return;
    }
    this.#jobs = this.#jobs.filter((j) => j !== job);
    const result = typeof failed === 'number' ? { lsn: failed } : failed === undefined ? {} : { failed };
    this.input((shards) => shards.done({ of: job.of, ...result }));
  }

  #later(of: number, run: Job['run'], ms = this.#options.random.below(LATE_MS)): Job {
    const job = { of, atMs: this.#options.nowMs() + ms, run };
    this.#jobs.push(job);
    return job;
  }

  #do(action: Action): void {
    if (action.do === 'fail') throw new Violation('shards', `shard ${action.shard} cannot be ${action.what}`);
    else if ('of' in action) this.#ask(action);
  }

  #ask(action: Request & { readonly of: number }): void {
    const { of } = action;
    switch (action.do) {
      case 'open':
        this.#open(action);
        this.#later(of, () => undefined);
        return;
      case 'snapshot':
        this.#later(of, () => undefined);
        return;
      case 'serve':
        this.#serve(this.#table(action.shard), of);
        return;
      case 'pause':
      case 'close':
        this.#stopServing(this.#table(action.shard), of, action.do === 'close');
        return;
      case 'copy':
        this.#copy(action);
        return;
      case 'keep base': {
        const table = this.#table(action.shard);
        table.incarnation = action.copy;
        this.#options.copies!.keepBase(action.shard, table.epoch, action.copy);
        this.#later(of, () => (this.#options.random.below(20) === 0 ? { full: false, error: 'damaged' } : undefined));
        return;
      }
      case 'stop':
        this.#stop(action.shard, of);
        return;
      case 'rely on disk':
        this.#later(of, () => undefined);
        return;
      case 'configure':
        if (this.#options.copies === undefined) this.#later(of, () => undefined);
        else this.#ofCopies(action, this.#options.copies);
        return;
      case 'follow':
      case 'follow owner':
      case 'lead':
      case 'require':
      case 'drop':
        this.#ofCopies(action, this.#options.copies!);
        return;
      case 'hand over':
        this.#handOver(action, this.#options.copies!);
        return;
      case 'step down':
        this.#stepDown(this.#table(action.shard), of, this.#options.copies!);
        return;
      case 'announce': {
        const { memberId: owner, memberIncarnation } = this.#options;
        const { shard, epoch, incarnation } = action;
        this.#propose(
          {
            t: 'shard-opened',
            shard,
            owner,
            memberIncarnation,
            epoch,
            incarnation,
            layoutEpoch: 1,
            buckets: 1,
            regions: [],
          },
          of,
        );
        return;
      }
      case 'propose':
        this.#propose(action.command, of);
        return;
      case 'probe':
      case 'look': {
        // Whoever cannot be reached may be there all the same.
        const { id, incarnation } = action.server;
        const isThere = this.#options.planeOf(id, incarnation) !== undefined;
        this.#later(of, () => (isThere ? undefined : { full: false, error: 'nobody listens' }));
        return;
      }
      case 'wait':
        this.#later(of, () => undefined, action.ms * WAIT_PART);
    }
  }

  #table(shard: number): Served {
    const table = this.#tables.get(shard);
    if (table === undefined) throw new Violation('shards', `shard ${shard} is not open`);
    return table;
  }

  #open({ shard, epoch, incarnation }: Extract<Request, { do: 'open' }>): void {
    const { copies } = this.#options;
    if (this.#tables.has(shard)) throw new Violation('shards', `shard ${shard} is open already`);
    const table: Served = {
      shard,
      epoch,
      incarnation,
      serving: false,
      ends: 0,
      grantedMs: -Infinity,
      copying: undefined,
    };
    this.#tables.set(shard, table);
    copies?.open(shard, epoch, incarnation);
  }

  /** Clients look for it where the metadata says that it is. */
  #mayServe({ shard, epoch, incarnation }: Served): void {
    const s = this.#options.metadata().shards[shard];
    if (s?.owner === this.#options.memberId && s.epoch === epoch && s.incarnation === incarnation) return;
    throw new Violation('shards', `shard ${shard} is served in epoch ${epoch}, and the metadata has no regions of it`);
  }

  #serve(table: Served, of: number): void {
    const { copies } = this.#options;
    this.#mayServe(table);
    if (copies === undefined) {
      table.serving = true;
      this.#later(of, () => undefined);
      return;
    }
    const own = copies.tables.get(table.shard);
    const { ends } = table;
    this.#later(of, () => {
      if (copies.tables.get(table.shard) !== own || own === undefined || table.ends !== ends)
        return { full: false, error: 'ended' };
      if (!copies.tookOver(table.shard)) return 'later';
      table.serving = own.serving = true;
      return undefined;
    });
  }

  #ofCopies(
    action: Extract<Request, { do: 'follow' | 'follow owner' | 'lead' | 'configure' | 'require' | 'drop' }> & {
      readonly of: number;
    },
    copies: CopyTables,
  ): void {
    const { shard, of } = action;
    const done = (): undefined => undefined;
    switch (action.do) {
      case 'follow': {
        const table = this.#table(shard);
        const { copying } = table;
        if (copying === undefined) throw new Violation('shards', `shard ${shard} is not copied`);
        copying.jobs.add(
          this.#later(of, () => {
            const failed = copies.follow(shard, copying.source);
            if (failed === undefined) table.copying = undefined;
            return failed;
          }),
        );
        return;
      }
      case 'follow owner': {
        const owner = action.source.owner ?? '';
        const start = this.#options.metadata().members.get(owner)?.incarnation ?? '';
        copies.followOwner(shard, { owner, start });
        this.#later(of, done);
        return;
      }
      case 'lead':
        if (!copies.isCopy(shard)) {
          this.#later(of, () => ({ full: false, error: 'it has followed nobody', none: true }));
          return;
        }
        this.#table(shard).epoch = action.epoch;
        this.#table(shard).incarnation = action.incarnation;
        // A copy may have followed though nobody heard of it in time.
        this.#table(shard).copying = undefined;
        copies.lead(shard, action.epoch, action.copies);
        this.#later(of, done);
        return;
      case 'configure':
        copies.configure(shard, action.epoch, action.copies);
        this.#later(of, done);
        return;
      case 'require': {
        const call = copies.require(shard, action.copy, this.grantedMs(shard));
        this.#later(of, () => (typeof call === 'number' ? copies.required(shard, action.copy, call) : call));
        return;
      }
      case 'drop':
        copies.drop(shard, action.copy);
        this.#later(of, done);
    }
  }

  /** Done when nobody relies on it any more and the copy has all; it may take too long. */
  #handOver(
    { shard, copy, of }: Extract<Request, { do: 'hand over' }> & { readonly of: number },
    copies: CopyTables,
  ): void {
    const { nowMs, random } = this.#options;
    const table = this.#table(shard);
    const own = copies.tables.get(shard);
    const { ends } = table;
    this.#later(of, () => {
      if (copies.tables.get(shard) !== own || own?.role !== 'owner' || table.ends !== ends)
        return { full: false, error: 'ended' };
      const hasAll = copies.hasAll(shard, copy);
      table.serving = own.serving = hasAll === undefined || random.below(30) === 0;
      if (table.serving) return { full: false, error: 'not handed over' };
      return hasAll === true && nowMs() >= table.grantedMs ? undefined : 'later';
    });
  }

  /** A copy when nobody relies on it any more. */
  #stepDown(table: Served, of: number, copies: CopyTables): void {
    const { nowMs } = this.#options;
    const own = copies.tables.get(table.shard);
    table.ends++;
    table.serving = false;
    if (own !== undefined) own.serving = false;
    this.#later(of, () => {
      if (nowMs() < table.grantedMs) return 'later';
      copies.stepDown(table.shard);
      return undefined;
    });
  }

  /** At once; done when nobody relies on it any more. */
  #stopServing(table: Served, of: number, close: boolean): void {
    const { nowMs, copies } = this.#options;
    table.ends++;
    table.serving = false;
    const own = copies?.tables.get(table.shard);
    if (own !== undefined) own.serving = false;
    if (close && table.copying !== undefined)
      throw new Violation('shards', `shard ${table.shard} is closed while it is copied into`);
    this.#later(of, () => {
      if (nowMs() < table.grantedMs) return 'later';
      if (!close) return undefined;
      this.#tables.delete(table.shard);
      copies?.close(table.shard);
      return undefined;
    });
  }

  #copy({ shard, source, owner, base, of }: Extract<Request, { do: 'copy' }> & { readonly of: number }): void {
    const { random, planeOf, copies } = this.#options;
    const table = this.#table(shard);
    if (base) {
      table.epoch = source.epoch;
      copies?.open(shard, source.epoch, table.incarnation);
    }
    const from = (): Served | undefined => {
      const other = planeOf(owner.id, owner.incarnation)?.tableOf(shard);
      return other?.incarnation === source.incarnation ? other : undefined;
    };
    const copying = { from, source: { owner: owner.id, start: owner.incarnation }, jobs: new Set<Job>() };
    table.copying = copying;
    copying.jobs.add(
      this.#later(of, () => {
        const other = from();
        if (other === undefined || random.below(20) === 0 || copies?.copied(copying.source, shard) !== undefined)
          return { full: random.below(4) === 0, error: 'the owner does not answer' };
        return undefined;
      }),
    );
  }

  /** What was promised of the copy fails. */
  #stop(shard: number, of: number): void {
    const table = this.#tables.get(shard);
    for (const job of table?.copying?.jobs ?? []) {
      if (!this.#jobs.includes(job)) continue;
      this.#jobs = this.#jobs.filter((j) => j !== job);
      this.#later(job.of, () => ({ full: false, error: 'stopped' }));
    }
    this.#later(of, () => {
      if (table !== undefined) table.copying = undefined;
      return undefined;
    });
  }

  #propose(command: Command, of: number): void {
    this.#options.propose(command, () => void this.#later(of, () => undefined));
  }
}
