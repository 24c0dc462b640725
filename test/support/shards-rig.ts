/** Shards of one server, whose actions are done when a test says so. */
import type { Command } from '../../core/metadata/commands.js';
import type { Action, Request, ReplicaEvent, Failure, ShardEvent } from '../../core/shards/actions.js';
import type { Found } from '../../core/shards/recovered.js';
import { Shards } from '../../core/shards/shards.js';
import { hexOf, type MetadataLog } from './metadata-log.js';

/** Server s1, or another, which is asked for nothing but what a test does. */
export class Rig<L extends MetadataLog = MetadataLog> {
  readonly log: L;
  readonly shards: Shards;
  readonly #open: (Request & { readonly of: number })[] = [];
  /** What operators are told. */
  readonly notes: ShardEvent[] = [];
  #names: number;

  constructor(log: L, memberId = 's1', memberIncarnation = hexOf(1), names = 100, found: readonly Found[] = []) {
    this.#names = names;
    this.log = log;
    this.shards = new Shards({
      memberId,
      memberIncarnation,
      shardMemoryMin: 1,
      random64: () => hexOf(++this.#names),
      found,
    });
  }

  /** What was asked for since it was asked last. */
  asked(): string[] {
    return this.shards.take().flatMap((action: Action) => {
      if (action.do === 'note') this.notes.push(action.note);
      if (!('of' in action)) return ['fail', 'discard'].includes(action.do) ? [action.do] : [];
      this.#open.push(action);
      return [
        action.do === 'propose'
          ? action.command.t
          : action.do === 'wait'
            ? `wait ${action.ms}`
            : action.do === 'configure' || action.do === 'lead'
              ? `${action.do} ${action.copies.config} [${action.copies.inSync.join()}]`
              : action.do === 'require' || action.do === 'drop'
                ? `${action.do} ${action.copy}`
                : action.do,
      ];
    });
  }

  /** Of the tables that are being opened. */
  get buckets(): number[] {
    return this.#open.flatMap((action) => (action.do === 'open' ? [action.buckets] : []));
  }

  see(...commands: Command[]): string[] {
    this.log.do(...commands);
    this.shards.see(this.log.state);
    return this.asked();
  }

  /** The oldest that is under way of these. */
  done(what: Request['do'], failed?: Failure, lsn?: number): string[] {
    return this.#done(
      this.#open.find((action) => action.do === what),
      what,
      failed,
      lsn,
    );
  }

  /** The latest wait of so long is over. */
  waited(ms: number): string[] {
    return this.#done(
      this.#open.findLast((action) => action.do === 'wait' && action.ms === ms),
      `wait ${ms}`,
    );
  }

  #done(action: { readonly of: number } | undefined, what: string, failed?: Failure, lsn?: number): string[] {
    if (action === undefined) throw new Error(`no ${what} is under way`);
    this.#open.splice(
      this.#open.findIndex(({ of }) => of === action.of),
      1,
    );
    this.shards.done({
      of: action.of,
      ...(failed === undefined ? {} : { failed }),
      ...(lsn === undefined ? {} : { lsn }),
    });
    return this.asked();
  }

  /** The data plane has noticed something of a copy. */
  notices(copy: string, what: ReplicaEvent): string[] {
    this.shards.copyNoticed(0, copy, what);
    return this.asked();
  }

  /** The data plane says that the owner of the copy here is gone, with this last record, or that it is not. */
  ownerSuspected(copy: string, prepared: number | undefined): string[] {
    this.shards.ownerSuspected(0, copy, prepared === undefined ? undefined : { prepared });
    return this.asked();
  }

  /** The commands of which the outcome is not known. */
  get proposed(): Command[] {
    return this.#open.flatMap((action) => (action.do === 'propose' ? [action.command] : []));
  }

  /** The oldest of them is applied, and its outcome is known. */
  applied(): string[] {
    const [command] = this.proposed;
    if (command === undefined) throw new Error('nothing is proposed');
    this.log.do(command);
    this.shards.see(this.log.state);
    return [...this.asked(), ...this.done('propose')];
  }

  /** Whether one of these is under way. */
  under(what: Request['do']): boolean {
    return this.#open.some((action) => action.do === what);
  }

  get epoch(): number {
    return this.log.shard(0).epoch;
  }

  move(to: string): Command {
    return { t: 'shard-move', shard: 0, epoch: this.epoch, to };
  }

  /** This server opens the shard in the metadata, as it was asked to. */
  announce(incarnation: string): Command {
    return {
      t: 'shard-opened',
      shard: 0,
      owner: 's1',
      memberIncarnation: hexOf(1),
      epoch: this.epoch,
      incarnation,
      layoutEpoch: 1,
      buckets: 1,
      regions: [],
    };
  }
}
