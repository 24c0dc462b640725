/**
 * What a demonstration must keep: every record that it loaded, and every shard at the server that has its values. A
 * server that a busy machine does not let run loses its lease, and with it its shards: others open them empty. This
 * says so instead of showing figures of GETs that find nothing.
 */
import type { ClusterStatus } from '../server/status.js';
import type { RunReport } from './ycsb/report.js';

type ShardOwner = Pick<ClusterStatus['shards'][number], 'shard' | 'owner' | 'epoch'>;

/** Why it happens and what helps, for a reader who saw it happen. */
const ADVICE =
  'A server that cannot renew its lease in time (--owner-lease-ms, 800 by default) loses its shards, and values live in ' +
  'its memory alone. On one machine this means that a server got no processor for that long: run the demo again when ' +
  'the machine has two processors to spare.';
const DEFECT = 'No shard has changed its owner, so this is a defect of farkv: please report it.';

/** What went wrong, why, and what to do; undefined when all was kept. A report is of one run over the loaded records. */
export function whatWasLost(
  before: readonly ShardOwner[],
  after: readonly ShardOwner[],
  runs: readonly Pick<RunReport, 'series'>[],
): string | undefined {
  const missed = new Map<string, number>();
  for (const { series } of runs)
    for (const { name, returns } of series) {
      const count = returns.NOT_FOUND ?? 0;
      if (count > 0) missed.set(name, (missed.get(name) ?? 0) + count);
    }
  const changed = before.flatMap(({ shard, owner, epoch }) => {
    const now = after.find((s) => s.shard === shard);
    return now?.owner === owner && now?.epoch === epoch
      ? []
      : [`${shard} (${owner ?? 'nobody'} -> ${now?.owner ?? 'nobody'})`];
  });
  if (missed.size === 0 && changed.length === 0) return undefined;
  const found =
    missed.size === 0
      ? 'no operation missed a record, but the values of some shards are gone'
      : `${[...missed].map(([name, count]) => `${count} ${name}`).join(' and ')} operations did not find a record that had been loaded`;
  return changed.length === 0
    ? `${found}. ${DEFECT}`
    : `${found}: of ${before.length} shards these have changed their owner since the start: ${changed.join(', ')}. ${ADVICE}`;
}
