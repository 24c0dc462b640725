/** What the command line says of shards on their way, and of what is in the way. */
import type { MoveError } from '../shards/move-errors.js';
import type { ClusterStatus } from '../status.js';

/** The same for as long as it is the same error. */
export function errorLine({ shard, from, to, attempts, reason, calledOff }: MoveError): string {
  if (calledOff)
    return `move of shard ${shard} (${from} -> ${to}) cancelled${attempts > 1 ? ` after ${attempts} attempts` : ''}; ${from} keeps serving it: ${reason}`;
  return `shard ${shard} could not be copied yet (${from} -> ${to}, ${attempts === 1 ? '1 attempt' : `${attempts} attempts`}); it will be retried: ${reason}`;
}

/** Of the shards of one server, or of all. */
export function errorLines({ moveErrors }: ClusterStatus, from?: string): string[] {
  return (moveErrors ?? []).filter((error) => from === undefined || error.from === from).map(errorLine);
}

const PHASES = { last: 'copying the last changes', copied: 'copied', released: 'about to be served there' } as const;

export function moveLines({ moves, shards }: ClusterStatus): string[] {
  return moves.map(
    ({ shard, to, phase, handover }) =>
      `shard ${shard} is moving (${shards.find((s) => s.shard === shard)?.owner ?? 'no owner'} -> ${to}): ${handover === true ? 'handed over once its copy is in sync' : phase === undefined ? 'copying' : PHASES[phase]}`,
  );
}
