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
 * Whatever goes wrong before `copied`, the owner goes on: the table is thrown away, and after a while made anew, as long as the move stands. After
 * COPY_ATTEMPTS, with pauses that double, the move is called off: what is in the way, such as a network in which this server does not reach the owner's data plane though
 * both reach the metadata group, will not go away by itself, and somebody is to know of it. A shard that does not fit in this server's memory will not fit the
 * next time either: its move is called off at once.
 *
 * What was copied is used only when `copied` was applied, and only in the epoch behind that of the owner it was copied from: a change that came later than the
 * copy would make it an old value.
 */
import type { CopyOptions, DataPlane } from '../../native/addon.js';
import type { Command } from '../../core/metadata/commands.js';
import type { CopyPhase, MetadataState, Shard } from '../../core/metadata/state.js';
import { describeError, type Log } from '../log.js';
import { asFarkvError } from '../native-errors.js';
import type { MoveTrouble } from './move-troubles.js';

export interface ArrivalOptions {
  readonly shard: number;
  /** Of the present owner. */
  readonly epoch: number;
  /** Of the move. */
  readonly planned: number;
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
  /** An attempt to copy it has failed. */
  readonly trouble: (trouble: Omit<MoveTrouble, 'agoMs' | 'to'> & { readonly epoch: number }) => void;
  readonly sleep: (ms: number) => Promise<void>;
  readonly log: Log;
}

/** With all of them failing at the first question, as where nobody answers, it takes half a minute until the move is called off. */
export const COPY_ATTEMPTS = 4;
/** After the first; twice as long after each more. */
const PAUSE_MS = 1000;
const AGAIN_MS = 500;
const NO_ROOM: ReadonlySet<string> = new Set(['ERR_TABLE_FULL', 'ERR_NO_MEMORY']);

export class Arrival {
  readonly #options: ArrivalOptions;
  #cancelled = false;
  /** Ends what is slept. */
  #wake: () => void = () => undefined;
  readonly #woken = new Promise<void>((resolve) => (this.#wake = resolve));
  #attempts = 0;
  /** It is not to be tried again. */
  #over = false;
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
    this.#wake();
    if (!this.#finished) void this.#stopCopy();
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
    const same = move?.planned === planned && (move.copy === hex64(incarnation) || (move.copy === undefined && !this.#last));
    return this.#cancelled || !same || s?.epoch !== epoch || s.owner === undefined ? undefined : s;
  }

  async #run(): Promise<boolean> {
    const { shard, group, incarnation, memoryBytes, dataPlane, log } = this.#options;
    // What was said of one that was finished may still be applied: no other copy may have its name.
    while (this.#source() !== undefined && !this.#finished) {
      let opened = false;
      try {
        await dataPlane.openShard({ shard, group, epoch: this.epoch, incarnation, memoryBytes });
        opened = true;
        if (await this.#copy()) return true;
      } catch (error) {
        this.#failed(error);
      }
      await this.#stopCopy();
      if (opened) await dataPlane.closeShard(shard).catch((error: unknown) => log.debug(`closing shard ${shard} failed: ${describeError(error)}`));
      if (this.#over) await this.#callOff();
      else if (this.#source() !== undefined) await this.#sleep(this.#pauseMs);
    }
    return false;
  }

  get #pauseMs(): number {
    return this.#attempts === 0 ? AGAIN_MS : PAUSE_MS * 2 ** (this.#attempts - 1);
  }

  #failed(error: unknown): void {
    const { shard, epoch, memberId, addressesOf, log, trouble } = this.#options;
    const source = this.#source();
    this.#full = NO_ROOM.has(asFarkvError(error).code);
    if (source?.owner === undefined) return;
    const { owner } = source;
    this.#attempts++;
    this.#over = this.#full || this.#attempts >= COPY_ATTEMPTS;
    const asked = addressesOf(source).map(({ provider, address }) => `${provider} ${address}`);
    const reason = this.#full ? `it does not fit in the memory of ${memberId} (--memory): ${describeError(error)}` : `${describeError(error)} (${owner} was asked at ${asked.join(', ') || 'no address: it has none that can be used from here'})`;
    if (this.#full) log.warn(`shard ${shard} does not fit in this server's memory (--memory): its move is called off, and ${owner} goes on to serve it: ${describeError(error)}`);
    else if (this.#over) log.warn(`shard ${shard} could not be copied from ${owner} in ${this.#attempts} attempts: its move is called off, and ${owner} goes on to serve it: ${reason}`);
    else log.warn(`shard ${shard} could not be copied from ${owner}, which goes on to serve it; it is tried again in ${this.#pauseMs} ms (attempt ${this.#attempts} of ${COPY_ATTEMPTS}): ${reason}`);
    trouble({ shard, from: owner, epoch, attempts: this.#attempts, reason, calledOff: this.#over });
  }

  /** Ends early when there is nothing to wait for any more: the shard may be this server's by then, and empty. */
  async #sleep(ms: number): Promise<void> {
    await Promise.race([this.#options.sleep(ms), this.#woken]);
  }

  async #stopCopy(): Promise<void> {
    const { dataPlane, shard, log } = this.#options;
    await dataPlane.stopCopy(shard).catch((error: unknown) => log.debug(`the copy of shard ${shard} could not be stopped: ${describeError(error)}`));
  }

  async #callOff(): Promise<void> {
    const { shard, epoch, propose } = this.#options;
    for (let source = this.#source(); source?.owner !== undefined; source = this.#source()) await propose({ t: 'shard-move', shard, epoch, to: source.owner });
  }

  async #copy(): Promise<boolean> {
    const { shard, epoch, dataPlane, state, addressesOf, log } = this.#options;
    let source = this.#source();
    while (source !== undefined && source.incarnation === undefined) {
      await this.#sleep(AGAIN_MS);
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
    await this.#stopCopy();
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
      const outcome = await propose({ t: 'shard-copy', shard, epoch, to: memberId, memberIncarnation, phase, group, copy: hex64(incarnation), planned });
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
