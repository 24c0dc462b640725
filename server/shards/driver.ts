/**
 * Runs this server's shards (core/shards): gives it the metadata, does what it asks of the data plane and
 * of the metadata group, and gives the results back. It decides nothing.
 */
import type { Command } from '../../core/metadata/commands.js';
import { heirNamed } from '../../core/metadata/copy-sets.js';
import { addressToUse } from '../../core/metadata/data-address.js';
import { ofDevice, type Member, type MetadataState, type Shard } from '../../core/metadata/state.js';
import { isSameHost, PROVIDERS } from '../../core/providers.js';
import { FarkvError } from '../../core/errors.js';
import { fromHex64, toHex64 } from '../../core/hex64.js';
import {
  Shards,
  type Action,
  type Request,
  type CopiesNow,
  type Found,
  type RejoinBackoff,
  type Left,
} from '../../core/shards/index.js';
import type { CopyConfig, CopyEvent, CopyOptions, CopyStats, DataPlane } from '../../native/data-plane.js';
import { within } from '../../net/deadline.js';
import { describeError, type Log } from '../log.js';
import type { Outcome } from '../metadata/proposer.js';
import { asFarkvError } from '../native-errors.js';
import { Fence } from './fence.js';
import { openedCommand } from './layout-delta.js';
import { LayoutPublisher } from './layout-publisher.js';
import { MoveErrors, type MoveError } from './move-errors.js';
import { ShardEvents } from './shard-events.js';

/** What is in the way of a server's shards. */
export interface Troubles {
  readonly moveErrors: readonly MoveError[];
  readonly heldBack: readonly RejoinBackoff[];
  readonly fullCopies: readonly number[];
}
export const NO_TROUBLES: Troubles = { moveErrors: [], heldBack: [], fullCopies: [] };

export interface ShardDriverOptions {
  readonly memberId: string;
  /** Of this start of the server, hex. */
  readonly incarnation: string;
  /** The least that a shard needs. */
  readonly shardMemoryMin: number;
  readonly dataPlane: Pick<
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
  >;
  /** What it has found on the disk. */
  readonly found?: readonly Found[];
  /** By what other owners can be reached from here; secure: in the clear only where they say so. */
  readonly here: { readonly providers: readonly string[]; readonly host: string | undefined; readonly secure: boolean };
  readonly state: () => MetadataState;
  readonly propose: (command: Command, timeoutMs: number) => Promise<Outcome>;
  /** Resolves when the leases of the last run are over, and this run has its own. */
  readonly leasesOver: Promise<void>;
  /** Called before the first shard is served: what is granted from now on must be waited for by the next start. */
  readonly beforeServing: () => void;
  /** 64 random bits. */
  readonly random64: () => bigint;
  readonly sleep: (ms: number) => Promise<void>;
  /** Rejects when nobody listens at any of these addresses. */
  readonly probe: (addresses: readonly string[]) => Promise<void>;
  /** Rejects when this server has ended, or is about to. */
  readonly stays: (server: Member) => Promise<void>;
  readonly log: Log;
  /** This server must not go on. */
  readonly fatal: (error: FarkvError) => void;
}

const PROPOSE_MS = 60_000;
/** After a change that was refused, or whose outcome is not known. */
const LOOK_AGAIN_MS = 100;
/** As many as followOwner takes. */
const OWNER_ADDRESSES = 8;
type OfCopies = Extract<
  Request,
  {
    do: 'follow' | 'keep base' | 'follow owner' | 'lead' | 'configure' | 'require' | 'drop' | 'hand over' | 'step down';
  }
>;
const NO_ROOM: ReadonlySet<string> = new Set(['ERR_TABLE_FULL', 'ERR_NO_MEMORY']);

export class ShardDriver {
  readonly #options: ShardDriverOptions;
  readonly #shards: Shards;
  readonly #waiters: (() => void)[] = [];
  readonly #closes = new Map<number, Promise<unknown>>();
  readonly #copied = new Map<number, CopyStats>();
  readonly #fence: Fence;
  readonly #publisher: LayoutPublisher;
  readonly #moveErrors = new MoveErrors();
  readonly #events: ShardEvents;
  #closing = false;
  /** Of the last run. */
  #leasesOver = false;

  constructor(options: ShardDriverOptions) {
    const { memberId, incarnation, shardMemoryMin, random64, dataPlane, sleep, log } = options;
    this.#options = options;
    this.#shards = new Shards({
      memberId,
      memberIncarnation: incarnation,
      shardMemoryMin,
      random64: () => toHex64(random64()),
      ...(options.found === undefined ? {} : { found: options.found }),
    });
    this.#fence = new Fence(() => dataPlane.stats());
    this.#events = new ShardEvents({
      memberId,
      log,
      moveErrors: this.#moveErrors,
      addressesOf: (shard) => this.#addressesOf(shard),
      statsOf: (shard) => this.#copied.get(shard),
      movesHere: (shard) => heirNamed(options.state(), shard) === memberId,
    });
    this.#publisher = new LayoutPublisher({
      dataPlane,
      sleep,
      log,
      known: (shard) => this.#shards.announced(shard),
      propose: (command) => this.#propose(command),
    });
    void options.leasesOver.then(() => {
      this.#leasesOver = true;
      this.#input(() => this.#shards.lastRunOver());
    });
  }

  /** To be called after this server's join was applied, and whenever the metadata changed since. */
  stateChanged(): void {
    if (!this.#closing) this.#input(() => this.#shards.see(this.#options.state()));
  }

  /** Every shard that the metadata gives to this server is served. */
  get settled(): boolean {
    return this.#shards.settled;
  }

  /**
   * Resolves when `condition` holds; it is looked at after every change here. Rejects with ERR_CLOSED after close().
   */
  async until(condition: () => boolean): Promise<void> {
    while (!condition()) {
      if (this.#closing) throw new FarkvError('ERR_CLOSED', 'the server is closing');
      await new Promise<void>((resolve) => this.#waiters.push(resolve));
    }
  }

  /** Numbers of the shards that are served. */
  get serving(): number[] {
    return this.#shards.serving;
  }

  /** What is in the way of shards that move from or to here. */
  get moveErrors(): MoveError[] {
    return this.#moveErrors.list(this.#options.state());
  }

  /** The data plane says that a shard's segments changed. */
  layoutChanged(shard: number): void {
    if (!this.#closing) this.#publisher.changed(shard);
  }

  /** For `farkv status`. */
  get troubles(): Troubles {
    const { heldBack, fullCopies } = this.#shards;
    return { moveErrors: this.moveErrors, heldBack, fullCopies };
  }

  /** The data plane has noticed something of a copy. */
  copyNoticed(shard: number, copy: bigint, what: CopyEvent): void {
    if (!this.#closing) this.#input(() => this.#shards.copyNoticed(shard, toHex64(copy), what));
  }

  /** The data plane says that the owner of a shard is gone, of which a copy is here, or that it is not. */
  ownerSuspected(shard: number, copy: bigint, gone: boolean, prepared: number): void {
    if (!this.#closing)
      this.#input(() => this.#shards.ownerSuspected(shard, toHex64(copy), gone ? { prepared } : undefined));
  }

  /** Resolves when the data plane has stopped answering for every shard that was taken away by now. */
  fence(): Promise<void> {
    return this.#fence.pass();
  }

  /**
   * Gives the shards that others have copies of, or are given some meanwhile, to them, while clients go on. Returns those
   * for which that took too long, or nobody was found.
   */
  async leave(timeoutMs: number): Promise<readonly Left[]> {
    this.#input(() => this.#shards.leave());
    const given = this.until(() => this.#shards.staying.length === 0).catch(() => undefined);
    await within(given, timeoutMs);
    return this.#shards.left;
  }

  /**
   * Stops answering and waits until every granted lease is over. False when that was not certain within the time, or
   * those of the last run are not over yet: for them there is nothing to be told that they are.
   */
  async close(timeoutMs: number): Promise<boolean> {
    this.#closing = true;
    this.#publisher.close();
    this.#input(() => this.#shards.endAll());
    const closed = Promise.all(this.#closes.values()).then(
      () => this.#leasesOver,
      (error: unknown) => {
        this.#options.log.warn(`closing the shards failed: ${describeError(error)}`, { event: 'shards-not-closed' });
        return false;
      },
    );
    return (await within(closed, timeoutMs)) ?? false;
  }

  // ---------------------------------------------------------------- the loop

  /** Never throws: it runs in handlers of promises and events, where an error would end the thread at once. */
  #input(input: () => void): void {
    try {
      input();
      for (const action of this.#shards.take()) {
        if ('of' in action) this.#ask(action);
        else this.#act(action);
      }
    } catch (error) {
      this.#options.fatal(asFarkvError(error));
    }
    for (const wake of this.#waiters.splice(0)) wake();
  }

  #act(action: Exclude<Action, { of: number }>): void {
    const { dataPlane, beforeServing, fatal } = this.#options;
    switch (action.do) {
      case 'mark':
        beforeServing();
        return;
      case 'limit':
        dataPlane.setTableMemory(action.memoryBytes);
        return;
      case 'note':
        this.#events.write(action.note);
        // Segments may have come between the layout that was announced and now.
        if (action.note.of === 'served') this.#publisher.changed(action.note.shard);
        return;
      case 'discard':
        dataPlane
          .discardCopy(action.shard, fromHex64(action.copy))
          .catch((error: unknown) =>
            this.#options.log.warn(`shard ${action.shard}: files of an old copy are left: ${describeError(error)}`, {
              event: 'copy-files-left',
              shard: action.shard,
            }),
          );
        return;
      case 'fail': {
        const { error, shard, what } = action;
        if (this.#closing) return;
        fatal(
          error instanceof FarkvError && what !== 'given up'
            ? error
            : new FarkvError('ERR_INTERNAL', `shard ${shard} cannot be ${what}: ${describeError(error)}`, {
                cause: error,
              }),
        );
      }
    }
  }

  /** Asks the data plane before it returns. */
  #ask(action: Request & { readonly of: number }): void {
    const { of } = action;
    this.#execute(action).then(
      (lsn) => this.#input(() => this.#shards.done({ of, ...(lsn === undefined ? {} : { lsn }) })),
      (error: unknown) => {
        const { code } = asFarkvError(error);
        const none = action.do === 'lead' && code === 'ERR_NOT_OWNER' ? ({ none: true } as const) : {};
        this.#input(() => this.#shards.done({ of, failed: { full: NO_ROOM.has(code), error, ...none } }));
      },
    );
  }

  /** What was committed, of `require`. */
  async #execute(action: Request): Promise<number | undefined> {
    const { dataPlane, memberId, incarnation: memberIncarnation, sleep, log } = this.#options;
    switch (action.do) {
      case 'open': {
        const { shard, worker, epoch, incarnation, memoryBytes, durable, buckets } = action;
        const table = { memoryBytes, durable, buckets };
        await dataPlane.openShard({ shard, worker, epoch, incarnation: fromHex64(incarnation), ...table });
        break;
      }
      case 'serve':
        await dataPlane.serveShard(action.shard);
        break;
      case 'snapshot':
        await dataPlane.snapshot(action.shard);
        break;
      case 'rely on disk':
        await dataPlane.relyOnDisk(action.shard);
        break;
      case 'pause':
        this.#fence.raise();
        await this.#ends(action.shard, dataPlane.pauseShard(action.shard));
        break;
      case 'close':
        this.#fence.raise();
        await this.#ends(action.shard, dataPlane.closeShard(action.shard));
        break;
      case 'copy': {
        const { shard, copy, source, owner, base } = action;
        await dataPlane.copyShard({
          shard,
          epoch: source.epoch,
          incarnation: fromHex64(source.incarnation ?? '0'),
          serverIncarnation: fromHex64(owner.incarnation),
          copy: fromHex64(copy),
          base,
          addresses: this.#addressesOf(source),
        });
        break;
      }
      case 'stop':
        await dataPlane
          .stopCopy(action.shard)
          .catch((error: unknown) =>
            log.debug(`the copy of shard ${action.shard} could not be stopped: ${describeError(error)}`),
          );
        break;
      case 'announce':
        await this.#propose(
          openedCommand({ ...action, owner: memberId, memberIncarnation }, await dataPlane.layout(action.shard)),
        );
        break;
      case 'propose':
        await this.#propose(action.command);
        break;
      case 'wait':
        await sleep(action.ms);
        break;
      case 'probe':
        await this.#options.probe(action.server.control);
        break;
      case 'look':
        await this.#options.stays(action.server);
        break;
      case 'follow':
      case 'keep base':
      case 'follow owner':
      case 'lead':
      case 'configure':
      case 'require':
      case 'drop':
      case 'hand over':
      case 'step down':
        return await this.#ofCopies(action);
    }
    return undefined;
  }

  async #ofCopies(action: OfCopies): Promise<number | undefined> {
    const { dataPlane } = this.#options;
    const { shard } = action;
    switch (action.do) {
      case 'follow':
        this.#copied.set(shard, await dataPlane.followCopy(shard));
        break;
      case 'keep base':
        await dataPlane.keepBase(shard, fromHex64(action.copy));
        break;
      case 'follow owner':
        await dataPlane.followOwner({ shard, addresses: this.#addressesOf(action.source).slice(0, OWNER_ADDRESSES) });
        break;
      case 'lead':
        await dataPlane.leadCopy({
          ...configOf(action),
          incarnation: fromHex64(action.incarnation),
          handed: action.copies.handed,
        });
        break;
      case 'configure':
        await dataPlane.configureCopies(configOf(action));
        break;
      case 'require':
        return (await dataPlane.requireCopy(shard, fromHex64(action.copy))).lsn;
      case 'drop':
        await dataPlane.dropCopy(shard, fromHex64(action.copy));
        break;
      case 'hand over':
        await dataPlane.handOver(shard, fromHex64(action.copy));
        break;
      case 'step down':
        this.#fence.raise();
        await dataPlane.stepDown(shard, fromHex64(action.copy));
    }
    return undefined;
  }

  /** Nobody relies on it when that is done. */
  async #ends(shard: number, ending: Promise<void>): Promise<void> {
    this.#closes.set(shard, ending);
    try {
      await ending;
    } finally {
      if (this.#closes.get(shard) === ending) this.#closes.delete(shard);
    }
  }

  /** Never rejects: the metadata says what came of it. */
  async #propose(command: Command): Promise<'applied' | 'look again'> {
    const { propose, log, sleep } = this.#options;
    try {
      const outcome = await propose(command, PROPOSE_MS);
      if (outcome !== 'unknown' && outcome.ok) return 'applied';
      if (outcome !== 'unknown') log.debug(`${command.t} was refused: ${outcome.message}`);
    } catch (error) {
      // Without a leader for so long, the change stays to be made.
      log.debug(`${command.t}: ${describeError(error)}`);
    }
    await sleep(LOOK_AGAIN_MS);
    return 'look again';
  }

  /** What a shard's owner can be asked for it at, the fastest first. */
  #addressesOf(shard: Shard): CopyOptions['addresses'] {
    const { here, state } = this.#options;
    const owner = shard.owner === undefined ? undefined : state().members.get(shard.owner);
    return (owner?.fabric ?? [])
      .filter(
        (a) =>
          a.worker === shard.worker &&
          here.providers.includes(a.provider) &&
          (!isSameHost(a.provider) || a.host === here.host),
      )
      .flatMap((a) => {
        const { provider, address: said } = a;
        const address = provider === 'tcp' ? addressToUse(said, here.secure) : said;
        return address === undefined ? [] : [{ provider, address, ...ofDevice(a) }];
      })
      .sort((a, b) => PROVIDERS.indexOf(a.provider) - PROVIDERS.indexOf(b.provider));
  }
}

function configOf(o: { readonly shard: number; readonly epoch: number; readonly copies: CopiesNow }): CopyConfig {
  const { shard, epoch, copies } = o;
  const { config, minInSync, alone } = copies;
  const ids = { inSync: copies.inSync.map(fromHex64), eligible: copies.eligible.map(fromHex64) };
  return { shard, epoch, config, minInSync, alone, ...ids, joining: copies.joining.map(fromHex64) };
}
