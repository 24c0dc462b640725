/** What happens to shards, in words: lines of the log, and what is in the way of moves. */
import type { Shard } from '../../core/metadata/state.js';
import type { ShardEvent } from '../../core/shards/index.js';
import type { CopyOptions, CopyStats } from '../../native/data-plane.js';
import { codeOf, describeError, type Log, type LogFields } from '../log.js';
import type { MoveErrors } from './move-errors.js';
import { SHARD_EVENT_NAMES } from './shard-event-names.js';

export interface ShardEventsOptions {
  readonly memberId: string;
  readonly moveErrors: MoveErrors;
  readonly addressesOf: (shard: Shard) => CopyOptions['addresses'];
  readonly statsOf: (shard: number) => CopyStats | undefined;
  /** The shard is to be handed over to a copy here. */
  readonly movesHere: (shard: number) => boolean;
  readonly log: Log;
}

/** Names that say less beside others in one line of the log than they do in a note. */
const NAMES: Readonly<Record<string, string>> = { member: 'server', again: 'retryMs' };

/** What the line of a note has for programs: all that the note says, and the code of an error. */
function fieldsOf(note: ShardEvent): LogFields {
  const { of, ...rest } = note;
  const fields: Record<string, string | number | boolean> = {};
  for (const [name, value] of Object.entries<unknown>(rest))
    if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean')
      fields[NAMES[name] ?? name] = value;
  return {
    event: SHARD_EVENT_NAMES[of],
    ...fields,
    ...('source' in note && note.source.owner !== undefined ? { from: note.source.owner } : {}),
    ...('error' in note ? codeOf(note.error) : {}),
  };
}

type Of<K extends ShardEvent['of']> = Extract<ShardEvent, { of: K }>;

export class ShardEvents {
  readonly #options: ShardEventsOptions;

  constructor(options: ShardEventsOptions) {
    this.#options = options;
  }

  write(note: ShardEvent): void {
    const { log, moveErrors, statsOf } = this.#options;
    const { shard } = note;
    const fields = fieldsOf(note);
    switch (note.of) {
      case 'served':
        log.debug(`shard ${shard} is served in epoch ${note.epoch}`, fields);
        return;
      case 'taken':
        log.warn(`shard ${shard} is no longer this server's in epoch ${note.epoch}`, fields);
        return;
      case 'hands over':
        log.info(`shard ${shard} is handed over to ${note.to}`, fields);
        return;
      case 'not handed over':
        log.warn(`shard ${shard} was not handed over to ${note.to}: it is served on`, fields);
        return;
      case 'handed over':
        log.info(`shard ${shard} of epoch ${note.epoch} was handed over, and is a copy here`, fields);
        return;
      case 'deposed':
        log.warn(
          `shard ${shard} of epoch ${note.epoch} is another server's, which did not hear of this one for a time; what is here goes on as a copy`,
          fields,
        );
        return;
      case 'copy begins':
        moveErrors.begun(shard);
        log.info(
          `shard ${shard}: a copy is made here, from ${note.from}${note.base ? ': of values that differ from those that are here' : ''}`,
          fields,
        );
        return;
      case 'copy follows': {
        const stats = note.copied ? statsOf(shard) : undefined;
        const how =
          stats === undefined
            ? ''
            : ` (${stats.entries} entries copied, ${stats.bytes} bytes; ${stats.kept} kept that were here)`;
        log.info(`shard ${shard}: the copy here has all that its owner had, and follows it${how}`, fields);
        return;
      }
      case 'copy kept':
        log.info(
          `shard ${shard}: the copy here was away for too long to go on. Its values are kept: a new copy needs only those that differ`,
          fields,
        );
        return;
      case 'copy failed':
        this.#copyFailed(note, fields);
        return;
      case 'copy removed':
        log.info(`shard ${shard}: the copy here is not wanted any more`, fields);
        return;
      case 'copy joins again':
        log.info(
          `shard ${shard}: the copy here was late and is not waited for any more: it joins again with what it has`,
          fields,
        );
        return;
      case 'copy damaged':
        log.error(
          `shard ${shard}: the copy here is not what its owner has in epoch ${note.epoch}, or its memory has changed by itself: it is made anew. If this comes again, test this server's memory`,
          fields,
        );
        return;
      case 'copy full':
        log.error(
          `shard ${shard}: the copy here has no room for what its owner has (--memory), and acknowledges nothing more: farkv status says what to do`,
          fields,
        );
        return;
      case 'owner gone':
        log.warn(
          `shard ${shard}: its owner in epoch ${note.epoch} does not answer: the copy here asks to take its place`,
          fields,
        );
        return;
      case 'copy is back':
        log.info(`shard ${shard}: the copy on this disk goes on`, fields);
        return;
      case 'copy discarded':
        log.info(
          `shard ${shard}: the copy on this disk was taken away while this server was away: it is none any more`,
          fields,
        );
        return;
      case 'copy missing':
        log.error(
          `shard ${shard}: this server was to serve it with copy ${note.copy}, which is not here: the shard waits for another copy. If it has none, farkv shard reset ${shard} --accept-loss serves it empty`,
          fields,
        );
        return;
      case 'copy leads':
        log.info(`shard ${shard} comes to this server in epoch ${note.epoch}, with the copy that is here`, fields);
        return;
      case 'copy in sync':
        log.info(`shard ${shard}: the copy at ${note.member} is in sync (${note.inSync} are, with this one)`, fields);
        return;
      case 'copy late':
        this.#copyLate(note, fields);
        return;
      case 'copy refused':
        log.warn(
          `shard ${shard}: the copy at ${note.member} cannot go on with what it has: it is made anew. Changes are refused until enough copies are in sync`,
          fields,
        );
        return;
      case 'copy marked':
        log.warn(
          `shard ${shard}: ${note.member} answers changes before its disk has them (--sync), and has started again: its copy may lack the last of them, and is made anew`,
          fields,
        );
        return;
      case 'copy held back':
        log.warn(
          `shard ${shard}: ${note.member} was late ${note.times} times, less than a minute apart: its copy is not waited for again before ${note.ms} ms are over. Look at its load, its network and its clock`,
          fields,
        );
        return;
      case 'not closed':
        log.warn(`closing shard ${shard} failed: ${describeError(note.error)}`, fields);
    }
  }

  #copyFailed({ shard, source, attempts, again, full, error }: Of<'copy failed'>, fields: LogFields): void {
    const { memberId, log, moveErrors, addressesOf, movesHere } = this.#options;
    const owner = source.owner ?? 'nobody';
    const asked = addressesOf(source).map(({ provider, address }) => `${provider} ${address}`);
    const why = describeError(error);
    const where = full
      ? ''
      : ` (${owner} was asked at ${asked.join(', ') || 'no address: it has none that can be used from here'})`;
    const isMoving = movesHere(shard);
    const next =
      again !== undefined
        ? `it is tried again in ${again} ms`
        : isMoving
          ? `its move to here is called off, and ${owner} goes on to serve it`
          : 'it is called off, and made elsewhere or, later and later, here';
    log.warn(
      `shard ${shard}: no copy could be made here of what ${owner} has${full ? ', for want of memory (--memory)' : ''}; ${next} (attempt ${attempts}): ${why}${where}`,
      fields,
    );
    if (!isMoving) return;
    const reason = full ? `it does not fit in the memory of ${memberId} (--memory): ${why}` : `${why}${where}`;
    const calledOff = again === undefined;
    moveErrors.note({ shard, from: owner, to: memberId, epoch: source.epoch, attempts, reason, calledOff });
  }

  #copyLate({ shard, member, inSync, minInSync }: Of<'copy late'>, fields: LogFields): void {
    const left =
      inSync < minInSync
        ? `TOO FEW: ${inSync} are in sync, changes need ${minInSync}, and are refused until then`
        : `${inSync} stay in sync`;
    this.#options.log.warn(
      `shard ${shard}: ${member} does not acknowledge changes: its copy is removed; ${left}`,
      fields,
    );
  }
}
