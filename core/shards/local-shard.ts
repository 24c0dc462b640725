/**
 * The states of a shard at one server. Each names what it waits for; a result counts only in the state that asked for
 * it.
 */
import type { RemovedCopy } from '../metadata/copy-commands.js';
import type { LateCount } from './rejoin-backoff.js';

/** One opening of one shard at this server. */
interface Opening {
  readonly shard: number;
  /** Under which it is opened. */
  readonly epoch: number;
  /** Of its contents: 64 random bits, hex. */
  readonly incarnation: string;
  /** Of the data plane, which has it for as long as it is open. */
  readonly worker: number;
}

/** A shard that is this server's. */
export interface Owned extends Opening {
  readonly kind: 'owned';
  readonly copies: ProgressTracker;
  state: OwnedState;
}

export type OwnedState =
  /** The data plane allocates and registers its memory. */
  | { readonly is: 'opening' }
  /** The copy that was here becomes the owner's table. */
  | { readonly is: 'leading' }
  /**
   * Open. Waits for the metadata to have its regions, then for the leases of the last run, then for the first copy of a
   * new shard, then for `serve`. `busy`: one of these was asked for. `waited`: for the first copy, or long enough.
   * `kept`: a new one that is durable is on the disk.
   */
  | { readonly is: 'announced'; busy: boolean; waited: 'not yet' | 'waiting' | 'enough'; kept: boolean }
  | { readonly is: 'serving' }
  /**
   * It is given to this copy (handover.ts). `handing`: the data plane is at it; `asked`: the metadata is to have it, in
   * this config; `keeping`: or a later config; `resuming`, `resting`: nothing came of it.
   */
  | {
      readonly is: 'handing';
      readonly to: string;
      readonly copy: string;
      config: number;
      at: 'handing' | 'asked' | 'keeping' | 'resuming' | 'resting';
    }
  /** Not this server's any more. */
  | { readonly is: 'closing' };

/** Earlier owners and earlier runs of this server may still be relied on. */
export function isBeforeServing({ is }: OwnedState): boolean {
  return is === 'opening' || is === 'leading' || is === 'announced';
}

/** The copies of a shard beside its owner's, at its owner (progress.ts). */
export interface ProgressTracker {
  /** What the data plane was told last; undefined: nothing yet. */
  config: number | undefined;
  /** Every copy in sync has all that came with the shard. */
  whole: boolean;
  /** What was committed when that was heard of last. */
  lsn: number;
  /** By id: those of which the data plane has said something. */
  readonly known: Map<string, Progress>;
  /** Ids of those that joined by that config: the data plane may have places for them. */
  joining: readonly string[];
  /** By member: copies that were late in the last minute. */
  readonly lateCounts: Map<string, LateCount>;
  /** Something is proposed against a copy, or is about to be. */
  busy: boolean;
  /** That it be taken away, once the disk here has what was answered. */
  leaving: RemovedCopy | undefined;
}

export interface Progress {
  readonly id: string;
  /** The metadata has, or had, a copy of this id. */
  named: boolean;
  /** It is waited for, and does not acknowledge. */
  late: boolean;
  /** `no`: it is in sync. `when back`: it was, and joins again as soon as the data plane says that it is there. */
  joins: 'yes' | 'no' | 'when back';
  /** Operators have been told that it is late. */
  told: boolean;
  /** Its server may have ended, and is being looked at. */
  probe: object | undefined;
  /** It was required in vain so many times. */
  attempts: number;
  /** After its member's copy was late so many times, it has been held back. */
  heldBack: number;
  state: ProgressState;
}

export type ProgressState =
  /** Only what the data plane says of it is known. */
  | { readonly is: 'idle' }
  /** It is about to be waited for, from this config on. */
  | { readonly is: 'requiring'; readonly config: number }
  /** It is waited for, and the metadata is to make it a copy in sync, in this config or not at all. */
  | { readonly is: 'proposing'; readonly config: number; readonly lsn: number; busy: boolean }
  /** It could not be required just now. */
  | { readonly is: 'resting' }
  /** It was late too often, and is not required yet. */
  | { readonly is: 'held back'; readonly member: string; readonly times: number };

/** `config`, `joining`: those of an owner that leads with a copy. */
export function newTracker(config?: number, joining: readonly string[] = []): ProgressTracker {
  return {
    config,
    whole: config === undefined,
    lsn: 0,
    known: new Map(),
    joining,
    lateCounts: new Map(),
    busy: false,
    leaving: undefined,
  };
}

/** A copy, here, of a shard that is another server's. */
export interface Backup {
  readonly kind: 'backup';
  readonly shard: number;
  readonly worker: number;
  /** Of the owner that it is copied from. */
  epoch: number;
  /** The copy's id: another one for each attempt. */
  incarnation: string;
  attempts: number;
  /** The metadata has had it by its id. */
  named: boolean;
  /** It is no copy: it is not what its owner has, and acknowledges nothing any more. */
  damaged: boolean;
  /** There was no memory for what its owner has, now or when it was made last. */
  full: boolean;
  /** Its table is that of the copy before. */
  base: boolean;
  /** It came back from the disk a moment ago: so long it waits for its owner, and for copies that have more. */
  patienceMs: number;
  state: BackupState;
}

export function newBackup(shard: number, worker: number): Backup {
  return {
    kind: 'backup',
    shard,
    worker,
    epoch: 0,
    incarnation: '',
    attempts: 0,
    named: false,
    damaged: false,
    full: false,
    base: false,
    patienceMs: 0,
    state: { is: 'resting' },
  };
}

/** What a copy has whose owner seems to be gone. */
export interface Suspicion {
  /** The last record that it has. */
  readonly prepared: number;
}

export type BackupState =
  | { readonly is: 'opening' }
  /** `waiting`: for its owner to have opened the shard; `telling`: the metadata is to have it by its name. */
  | { readonly is: 'copying'; at: 'waiting' | 'copying' | 'telling'; busy: boolean }
  /** It becomes a backup of its owner. */
  | { readonly is: 'joining' }
  /**
   * `owner`: whom it follows, with the start and the worker; `synced`: it was in sync by the last config; `again`: it
   * was, and joins; `late`: it should be in sync by now, when the last of `waits` is over; `suspicion`: that owner seems to
   * be gone; `removing`: the metadata is to have it no more, for this server ends or it cannot go on.
   */
  | {
      readonly is: 'following';
      owner: string | undefined;
      synced: boolean;
      again: boolean;
      late: boolean;
      waits: number;
      suspicion: Suspicion | undefined;
      removing: boolean;
    }
  /** It was the owner's table, and is another owner's shard now. */
  | { readonly is: 'stepping down' }
  /** In sync, and its owner seems to be gone: when its turn has come, the metadata is to promote it. */
  | { readonly is: 'suspecting'; readonly owner: string; readonly suspicion: Suspicion; at: 'waiting' | 'proposing' }
  /** The metadata is to have another name in its place: then nobody can wait for it. */
  | { readonly is: 'renouncing'; readonly name: string; busy: boolean }
  | {
      readonly is: 'clearing';
      readonly then: 'end' | 'again' | 'base';
      readonly open: boolean;
      at: 'stopping' | 'keeping' | 'closing';
    }
  /** The table is open, and no copy: it waits to be wanted as the base of one. `rests`: not before the next attempt. */
  | { readonly is: 'kept'; readonly rests: boolean }
  | { readonly is: 'resting' }
  /** It could not be made so often that the metadata is to have it no more. */
  | { readonly is: 'calling off' };

export type LocalShard = Owned | Backup;

export function transition<L extends LocalShard>(local: L, state: L['state']): void {
  local.state = state;
}

/** Clients may be answered. */
export function serves(local: LocalShard): boolean {
  return (
    local.kind === 'owned' &&
    (local.state.is === 'serving' ||
      (local.state.is === 'handing' && (local.state.at === 'handing' || local.state.at === 'resting')))
  );
}
