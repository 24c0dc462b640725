/**
 * A shard on its way to this server: opened here, and copied from its present owner while that one goes on to serve it.
 *
 *     a move of the shard to this server is in the metadata
 *        -> openShard(epoch + 1)                    an empty table; nothing is answered
 *        -> copyShard                               by one-sided READs (native/move/copy.h), until little is left
 *        -> shard-copy `last` is applied            the owner makes its leases short and takes no more changes
 *        -> finishCopy                              both have the same
 *        -> shard-copy `copied` is applied          the owner gives the shard up, and keeps what is in it
 *        -> shard-released is applied               nobody may be relied on for it
 *        -> shard-opened is applied                 this server owns it, and serves what it has (region-life.ts)
 *
 * Whatever goes wrong before `copied`, the owner goes on: the table is thrown away, and after a while made anew, as long as the move stands. A shard that
 * does not fit in this server's memory will not fit the next time either: its move is called off. What was copied is
 * used only when `copied` was applied, and only in the epoch behind that of the owner it was copied from: a change that came later than the copy
 * would make it an old value.
 */
import type { CopyOptions, DataPlane } from '../../native/addon.js';
import type { Command } from '../../core/metadata/commands.js';
import type { CopyPhase, MetadataState, Shard } from '../../core/metadata/state.js';
import { describeError, type Log } from '../log.js';
import { asFarkvError } from '../native-errors.js';

export interface ArrivalOptions {
  readonly shard: number;
  /** Of the present owner. */
  readonly epoch: number;
  /** Of the move. */
  readonly planned: number | undefined;
  /** In this server's data plane. */
  readonly group: number;
  readonly incarnation: bigint;
  readonly memoryBytes: number;
  readonly memberId: string;
  readonly memberIncarnation: string;
  readonly dataPlane: Pick<DataPlane, 'openShard' | 'closeShard' | 'copyShard' | 'finishCopy' | 'stopCopy'>;
  readonly state: () => MetadataState;
  /** Proposes; 'look again' when it was refused or nothing is known. */
  readonly propose: (command: Command) => Promise<'applied' | 'look again'>;
  readonly addressesOf: (shard: Shard) => CopyOptions['addresses'];
  readonly sleep: (ms: number) => Promise<void>;
  readonly log: Log;
}

const AGAIN_MS = 500;
const NO_ROOM: ReadonlySet<string> = new Set(['ERR_TABLE_FULL', 'ERR_NO_MEMORY']);

export class Arrival {
  readonly #options: ArrivalOptions;
  #cancelled = false;
  /** `last` was applied for this copy. */
  #last = false;
  /** Both have had the same: what was proposed then may have been applied, whatever happened since. */
  #finished = false;
  #full = false;
  /** True: the shard is open and has all that its last owner had; false: it is closed. */
  readonly ended: Promise<boolean>;

  constructor(options: ArrivalOptions) {
    this.#options = options;
    this.ended = this.#run();
  }

  get incarnation(): bigint {
    return this.#options.incarnation;
  }

  get epoch(): number {
    return this.#options.epoch + 1;
  }

  get memoryBytes(): number {
    return this.#options.memoryBytes;
  }

  /** The move is no more, or this server ends. Nothing is stopped where the shard may be this server's by now with all that is in it. */
  cancel(): void {
    if (this.#cancelled) return;
    this.#cancelled = true;
    if (!this.#finished) this.#options.dataPlane.stopCopy(this.#options.shard);
  }

  /** This server had no memory for it. */
  get full(): boolean {
    return this.#full;
  }

  get stands(): boolean {
    return this.#source() !== undefined;
  }

  /** To be called whenever the metadata changed. */
  stateChanged(): void {
    if (!this.stands) this.cancel();
  }

  /** The shard at its owner, as long as it moves here from there. */
  #source(): Shard | undefined {
    const { state, shard, epoch, planned, memberId, incarnation } = this.#options;
    const s = state().shards[shard];
    const move = state().moves.find((m) => m.shard === shard && m.to === memberId);
    // Called off and planned again, it is another move, for another copy.
    const same = move !== undefined && move.planned === planned && (move.copy === hex64(incarnation) || (move.copy === undefined && !this.#last));
    return this.#cancelled || !same || s?.epoch !== epoch || s.owner === undefined ? undefined : s;
  }

  async #run(): Promise<boolean> {
    const { shard, group, incarnation, memoryBytes, dataPlane, log, sleep } = this.#options;
    // What was said of one that was finished may still be applied: no other copy may have its name.
    while (this.#source() !== undefined && !this.#finished) {
      let opened = false;
      try {
        await dataPlane.openShard({ shard, group, epoch: this.epoch, incarnation, memoryBytes });
        opened = true;
        if (await this.#copy()) return true;
      } catch (error) {
        const source = this.#source();
        this.#full = NO_ROOM.has(asFarkvError(error).code);
        if (source !== undefined && this.#full) log.warn(`shard ${shard} does not fit in this server's memory (--memory): its move is called off, and ${source.owner ?? 'its owner'} goes on to serve it: ${describeError(error)}`);
        else if (source !== undefined) log.warn(`shard ${shard} could not be copied from ${source.owner ?? 'its owner'}, which goes on to serve it; it is tried again: ${describeError(error)}`);
      }
      dataPlane.stopCopy(shard);
      if (opened) await dataPlane.closeShard(shard).catch((error: unknown) => log.debug(`closing shard ${shard} failed: ${describeError(error)}`));
      if (this.#full) await this.#callOff();
      else if (this.#source() !== undefined) await sleep(AGAIN_MS);
    }
    return false;
  }

  async #callOff(): Promise<void> {
    const { shard, epoch, propose } = this.#options;
    for (let source = this.#source(); source?.owner !== undefined; source = this.#source()) await propose({ t: 'shard-move', shard, epoch, to: source.owner });
  }

  async #copy(): Promise<boolean> {
    const { shard, epoch, dataPlane, state, addressesOf, log, sleep } = this.#options;
    let source = this.#source();
    while (source !== undefined && source.incarnation === undefined) {
      await sleep(AGAIN_MS);
      source = this.#source();
    }
    const owner = source?.owner === undefined ? undefined : state().members.get(source.owner);
    if (source?.incarnation === undefined || owner === undefined) return false;
    log.info(`shard ${shard} is copied from ${owner.id}`);
    await dataPlane.copyShard({ shard, epoch, incarnation: BigInt(`0x${source.incarnation}`), serverIncarnation: BigInt(`0x${owner.incarnation}`), copy: this.incarnation, addresses: addressesOf(source) });
    if (!(await this.#reach('last'))) return false;
    const last = performance.now();
    const { entries, bytes, reads, twoSidedGets } = await dataPlane.finishCopy(shard);
    this.#finished = true;
    if (!(await this.#reach('copied'))) {
      this.#finished = false;
      return false;
    }
    dataPlane.stopCopy(shard);
    log.info(`shard ${shard} was copied: ${entries} entries, ${bytes} bytes, by ${reads} READs and ${twoSidedGets} questions; its last part took ${Math.round(performance.now() - last)} ms`);
    return true;
  }

  /** What was proposed was applied, though nobody said so; more may have been by now, up to the change of owner. */
  #isAt(phase: CopyPhase): boolean {
    const { shard, incarnation, state } = this.#options;
    return state().moves.some((m) => m.shard === shard && m.copy === hex64(incarnation) && (m.phase === phase || (phase === 'copied' && m.phase === 'released')));
  }

  /** The shard is this server's to open with this copy: nothing was changed after it. */
  get given(): boolean {
    const { shard, incarnation, memberId, state } = this.#options;
    return isGiven(state(), shard, memberId, incarnation);
  }

  /** False: the move is no more. */
  async #reach(phase: CopyPhase): Promise<boolean> {
    const { shard, epoch, planned, group, incarnation, memberId, memberIncarnation, propose } = this.#options;
    if (phase === 'last' && this.#last) return true;
    while (this.#source() !== undefined) {
      const outcome = await propose({ t: 'shard-copy', shard, epoch, to: memberId, memberIncarnation, phase, group, copy: hex64(incarnation), ...(planned === undefined ? {} : { planned }) });
      if (outcome === 'applied' || this.#isAt(phase)) {
        this.#last = true;
        return true;
      }
    }
    return false;
  }
}

/** The metadata names the copy until it is opened, so a server may apply all of a move at once. */
export function isGiven({ moves }: MetadataState, shard: number, memberId: string, incarnation: bigint): boolean {
  return moves.some((m) => m.shard === shard && m.to === memberId && m.phase === 'released' && m.copy === hex64(incarnation));
}

export function hex64(n: bigint): string {
  return n.toString(16).padStart(16, '0');
}

/** What a shard's owner can be asked for it at, the fastest first. */
export function addressesOf(state: MetadataState, shard: Shard, here: { readonly providers: readonly string[]; readonly host: string | undefined }): CopyOptions['addresses'] {
  const order = ['shm', 'verbs', 'tcp'];
  const owner = shard.owner === undefined ? undefined : state.members.get(shard.owner);
  return (owner?.fabric ?? [])
    .filter((a) => a.group === shard.group && order.includes(a.provider) && here.providers.includes(a.provider) && (a.provider !== 'shm' || a.host === here.host))
    .map(({ provider, address }) => ({ provider, address }))
    .sort((a, b) => order.indexOf(a.provider) - order.indexOf(b.provider));
}
