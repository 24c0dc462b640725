/**
 * A server's shards over a data plane and a metadata group that are only remembered: for tests of server/shards and
 * core/shards.
 */
import type { ExecutionContext } from 'ava';
import { FarkvError } from '../../core/errors.js';
import { toHex64 } from '../../core/hex64.js';
import {
  encodeProposal,
  type Bootstrap,
  type Command,
  type MemberJoin,
  type ShardOpened,
} from '../../core/metadata/commands.js';
import { MetadataMachine } from '../../core/metadata/machine.js';
import type {
  CopyConfig,
  CopyOptions,
  CopyStats,
  DataPlane,
  NativeRegion,
  OwnerOfCopy,
  ShardLayout,
} from '../../native/data-plane.js';
import type { DataPlaneStats } from '../../native/data-plane-stats.js';
import { Log } from '../../server/log.js';
import type { Outcome } from '../../server/metadata/proposer.js';
import { bootstrapOf } from './metadata-log.js';
import { ShardDriver, type ShardDriverOptions } from '../../server/shards/driver.js';

export const incarnation = (n: number): string => toHex64(BigInt(n));
export const join = (n: number, replaces?: number): MemberJoin => ({
  t: 'member-join',
  id: 's1',
  incarnation: incarnation(n),
  ...(replaces === undefined ? {} : { replaces: incarnation(replaces) }),
  instance: incarnation(99),
  control: ['127.0.0.1:7400'],
  fabric: [{ provider: 'tcp', address: '127.0.0.1:1', worker: 0 }],
  memoryBytes: 1 << 26,
});
export const segment = (n: number, rkey = 1n): NativeRegion => ({
  provider: 'tcp',
  kind: 'heap',
  segment: n,
  tag: n + 1,
  bytes: 4096,
  remoteAddress: 4096n,
  rkey,
});

function configured({ shard, epoch, config, minInSync, inSync }: CopyConfig): string {
  return `${shard} epoch ${epoch} config ${config} at least ${minInSync} [${inSync.join()}]`;
}

const COPIED: CopyStats = { entries: 1, bytes: 1, kept: 2, reads: 1, twoSidedGets: 0 };

/** A data plane that remembers what was asked of it. */
export class FakeDataPlane implements Pick<
  DataPlane,
  | 'openShard'
  | 'serveShard'
  | 'closeShard'
  | 'layout'
  | 'stats'
  | 'setTableMemory'
  | 'pauseShard'
  | 'copyShard'
  | 'stopCopy'
  | 'followCopy'
  | 'keepBase'
  | 'followOwner'
  | 'leadCopy'
  | 'configureCopies'
  | 'requireCopy'
  | 'dropCopy'
  | 'relyOnDisk'
  | 'handOver'
  | 'stepDown'
  | 'snapshot'
  | 'discardCopy'
> {
  readonly events: string[];
  /** Of each table, as they were set. */
  readonly limits: number[] = [];
  readonly layouts = new Map<number, ShardLayout>();
  /** Holds closeShard back until it is called. */
  closing: Promise<void> = Promise.resolve();
  /** Holds copyShard back, or makes it fail. */
  copying: Promise<void> = Promise.resolve();

  constructor(events: string[]) {
    this.events = events;
  }

  openShard(o: {
    readonly shard: number;
    readonly worker: number;
    readonly epoch: number;
    readonly incarnation: bigint;
    readonly memoryBytes: number;
  }): Promise<ShardLayout> {
    this.events.push(`open ${o.shard} epoch ${o.epoch} memory ${o.memoryBytes}`);
    const layout = {
      shard: o.shard,
      epoch: o.epoch,
      incarnation: o.incarnation,
      layoutEpoch: 1,
      buckets: 64,
      regions: [segment(0)],
    };
    this.layouts.set(o.shard, layout);
    return Promise.resolve(layout);
  }

  serveShard(shard: number): Promise<void> {
    this.events.push(`serve ${shard}`);
    return Promise.resolve();
  }

  async closeShard(shard: number): Promise<void> {
    this.events.push(`close ${shard}`);
    await this.closing;
    this.events.push(`closed ${shard}`);
  }

  layout(shard: number): Promise<ShardLayout> {
    return Promise.resolve(this.layouts.get(shard)!);
  }

  stats(): Promise<DataPlaneStats> {
    this.events.push('stats');
    return Promise.resolve({ pages: 'small', descriptorsMissed: 0, tenants: [], workers: [], shards: [] });
  }

  async pauseShard(shard: number): Promise<void> {
    this.events.push(`pause ${shard}`);
    await this.closing;
    this.events.push(`paused ${shard}`);
  }

  copyShard({ shard }: CopyOptions): Promise<void> {
    this.events.push(`copy ${shard}`);
    return this.copying;
  }

  stopCopy(shard: number): Promise<void> {
    this.events.push(`stop ${shard}`);
    return Promise.resolve();
  }

  /** Holds followCopy back, or makes it fail. */
  following: Promise<void> = Promise.resolve();

  async followCopy(shard: number): Promise<CopyStats> {
    this.events.push(`follow ${shard}`);
    await this.following;
    return COPIED;
  }

  keepBase(shard: number, copy: bigint): Promise<void> {
    this.events.push(`keep base ${shard} ${copy}`);
    return Promise.resolve();
  }

  followOwner({ shard, addresses }: OwnerOfCopy): Promise<void> {
    this.events.push(`follow ${shard} at ${addresses.map((a) => a.address).join()}`);
    return Promise.resolve();
  }

  leadCopy({ incarnation: name, ...o }: CopyConfig & { readonly incarnation: bigint }): Promise<ShardLayout> {
    this.events.push(`lead ${configured(o)}`);
    const layout = { ...this.layouts.get(o.shard)!, epoch: o.epoch, incarnation: name };
    this.layouts.set(o.shard, layout);
    return Promise.resolve(layout);
  }

  configureCopies(o: CopyConfig): Promise<void> {
    this.events.push(`configure ${configured(o)}`);
    return Promise.resolve();
  }

  requireCopy(shard: number, id: bigint): Promise<{ readonly lsn: number }> {
    this.events.push(`require ${shard} ${id}`);
    return Promise.resolve({ lsn: 12 });
  }

  handOver(shard: number, id: bigint): Promise<void> {
    this.events.push(`hand over ${shard} to ${id}`);
    return Promise.resolve();
  }

  stepDown(shard: number, id: bigint): Promise<void> {
    this.events.push(`step down ${shard} ${id}`);
    return Promise.resolve();
  }

  snapshot(shard: number): Promise<void> {
    this.events.push(`snapshot ${shard}`);
    return Promise.resolve();
  }
  discardCopy(shard: number, id: bigint): Promise<void> {
    this.events.push(`discard ${shard} ${id}`);
    return Promise.resolve();
  }
  relyOnDisk(shard: number): Promise<void> {
    this.events.push(`rely on disk ${shard}`);
    return Promise.resolve();
  }
  dropCopy(shard: number, id: bigint): Promise<void> {
    this.events.push(`drop ${shard} ${id}`);
    return Promise.resolve();
  }

  setTableMemory(bytes: number): void {
    this.limits.push(bytes);
  }

  grow(shard: number, regions: readonly NativeRegion[]): void {
    const before = this.layouts.get(shard)!;
    this.layouts.set(shard, { ...before, layoutEpoch: before.layoutEpoch + 1, regions });
  }
}

export class World {
  readonly machine: MetadataMachine;
  readonly events: string[] = [];
  readonly dataPlane = new FakeDataPlane(this.events);
  readonly failures: FarkvError[] = [];
  /** Outcomes to give instead of applying, oldest first. */
  readonly instead: (Outcome | 'lost')[] = [];
  leasesOver: () => void = () => undefined;
  driver: ShardDriver;
  #sequence = 0;

  constructor(options: Partial<ShardDriverOptions> = {}, format?: number) {
    this.machine = new MetadataMachine(format);
    let counter = 1000n;
    this.driver = new ShardDriver({
      memberId: 's1',
      incarnation: incarnation(1),
      shardMemoryMin: 4 << 20,
      dataPlane: this.dataPlane,
      state: () => this.machine.state,
      propose: (command) => this.#propose(command),
      leasesOver: new Promise((resolve) => (this.leasesOver = resolve)),
      beforeServing: () => this.events.push('marked'),
      probe: () => Promise.resolve(),
      stays: () => Promise.resolve(),
      here: { providers: ['tcp'], host: undefined, secure: false },
      random64: () => ++counter,
      sleep: () => Promise.resolve(),
      log: new Log('error', () => undefined),
      fatal: (error) => this.failures.push(error),
      ...options,
    });
  }

  apply(...commands: Command[]): void {
    this.applyUnseen(...commands);
    this.driver.stateChanged();
  }

  /** The server looks at it only when more has come. */
  applyUnseen(...commands: Command[]): void {
    for (const command of commands) {
      const { outcome } = this.machine.apply(
        encodeProposal({ proposer: incarnation(5), sequence: ++this.#sequence, command }),
      );
      if (outcome === 'duplicate' || !outcome.ok) throw new Error(`refused: ${JSON.stringify(command)}`);
    }
  }

  async #propose(command: Command): Promise<Outcome> {
    this.events.push(
      command.t === 'shard-layout'
        ? `propose ${command.t} +${command.add.length} -${command.remove.length}`
        : `propose ${command.t}`,
    );
    // As a change takes its time.
    await new Promise((resolve) => setImmediate(resolve));
    const instead = this.instead.shift();
    if (instead === 'lost') throw new FarkvError('ERR_TIMEOUT', 'lost');
    if (instead !== undefined) return instead;
    const { outcome } = this.machine.apply(
      encodeProposal({ proposer: incarnation(5), sequence: ++this.#sequence, command }),
    );
    this.driver.stateChanged();
    return outcome === 'duplicate' ? 'unknown' : outcome;
  }

  /** Resolves when `event` has happened. */
  async seen(event: string): Promise<void> {
    while (!this.events.includes(event)) await new Promise((resolve) => setImmediate(resolve));
  }

  /** The events that begin with one of these words, without what follows it. */
  steps(...words: readonly string[]): string[] {
    return this.events.map((e) => e.split(' ')[0]!).filter((step) => words.includes(step));
  }

  /** Everything that can happen without outside help has happened. */
  async quiet(): Promise<void> {
    for (let before = -1; before !== this.events.length;) {
      before = this.events.length;
      for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve));
    }
  }
}

export const bootstrap = (shards: number, voters: readonly string[] = ['s1']): Bootstrap => bootstrapOf(shards, voters);

export async function serving(t: ExecutionContext, shards = 1): Promise<World> {
  const world = new World();
  world.apply(bootstrap(shards), join(1), { t: 'assign-shards' });
  world.leasesOver();
  await world.driver.until(() => world.driver.settled);
  await world.quiet();
  t.deepEqual(world.failures, []);
  return world;
}

/** s2, which only has to be there. */
export const other: Command = { ...join(50), id: 's2', instance: incarnation(98) };

export async function two(t: ExecutionContext, options: Partial<ShardDriverOptions> = {}): Promise<World> {
  const world = new World(options);
  world.apply(bootstrap(2, ['s1', 's2']), join(1), { t: 'assign-shards' }, other);
  world.leasesOver();
  await world.driver.until(() => world.driver.settled);
  await world.quiet();
  t.deepEqual(world.driver.serving, [0, 1]);
  return world;
}

/** s2 has opened shard 0. */
export function openedByOther(epoch: number, name = 77): ShardOpened {
  return {
    t: 'shard-opened',
    shard: 0,
    owner: 's2',
    memberIncarnation: incarnation(50),
    epoch,
    incarnation: incarnation(name),
    layoutEpoch: 1,
    buckets: 64,
    regions: [],
  };
}
