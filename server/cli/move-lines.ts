/** What the command line says of shards on their way, and of what is in the way. */
import type { MoveTrouble } from '../regions/move-troubles.js';
import type { ClusterStatus } from '../status.js';

/** The same for as long as it is the same trouble. */
export function troubleLine({ shard, from, to, attempts, reason, calledOff }: MoveTrouble): string {
  if (calledOff) return `the move of shard ${shard} from ${from} to ${to} was called off${attempts > 1 ? ` after ${attempts} attempts` : ''}, and ${from} goes on to serve it: ${reason}`;
  return `shard ${shard} could not be copied from ${from} to ${to} yet, and is tried again (${attempts === 1 ? '1 attempt' : `${attempts} attempts`}): ${reason}`;
}

/** Of the shards of one server, or of all. */
export function troubleLines({ moveTroubles }: ClusterStatus, from?: string): string[] {
  return (moveTroubles ?? []).filter((trouble) => from === undefined || trouble.from === from).map(troubleLine);
}

const PHASES = { last: 'the last of it is being copied', copied: 'it has been copied', released: 'it is about to be served there' } as const;

export function moveLines({ moves, shards }: ClusterStatus): string[] {
  return moves.map(({ shard, to, phase }) => `shard ${shard} is on its way from ${shards.find((s) => s.shard === shard)?.owner ?? 'nobody'} to ${to}: ${phase === undefined ? 'it is being copied' : PHASES[phase]}`);
}
