/**
 * Lines of the log about room that values did not get: changes that were refused for want of memory, descriptors that
 * were missed for it, and the disk of their log.
 */
import type { DataPlane } from '../native/data-plane.js';
import type { DataPlaneStats } from '../native/data-plane-stats.js';
import { formatSize } from '../core/size.js';
import { fullLogs, LOG_AHEAD_BYTES } from './attention.js';
import { RAISE_DESCRIPTORS } from './descriptors.js';
import type { Log } from './log.js';
import { DiskLines } from './metadata/disk-lines.js';

const LOOK_MS = 10_000;
/** Between two lines about refused changes. */
const QUIET_MS = 60_000;
/** As the alert FarkvChangesRejected (docs/dashboards/alerts.yml). */
export const LATELY_MS = 300_000;

export interface MemoryWatch {
  /** How long ago changes were last seen refused for want of room; undefined: none were in the last five minutes. */
  refusedAgoMs(stats: DataPlaneStats): number | undefined;
}

const refusals = ({ workers }: DataPlaneStats): number =>
  workers.reduce((sum, { refused }) => sum + (refused.ERR_TABLE_FULL ?? 0), 0);

/** Where `farkv status` names nothing that is full. */
function limitText({ shards }: DataPlaneStats): string {
  const limit = Math.min(...shards.map(({ memoryBytes }) => memoryBytes));
  return shards.length === 0 ? '' : `. A shard may have ${formatSize(limit)} here: a value must fit into what is free`;
}

/** Looks until the data plane is closed. */
export function watchMemory(
  plane: Pick<DataPlane, 'stats'>,
  log: Log,
  { lookMs = LOOK_MS, quietMs = QUIET_MS, nowMs = () => performance.now() } = {},
): MemoryWatch {
  let missed = 0;
  let refused = 0;
  let saidMs = -Infinity;
  let seen = 0;
  let seenMs = -Infinity;
  const look = (stats: DataPlaneStats): number => {
    const all = refusals(stats);
    // Figures that were asked for earlier may come later.
    if (all > seen) {
      seen = all;
      seenMs = nowMs();
    }
    return all;
  };
  const disk = new DiskLines({
    log,
    full: {
      event: 'values-log-full',
      text: `changes of durable values are refused, and their shards may not be served, until ${formatSize(LOG_AHEAD_BYTES)} are free for each data-plane thread`,
    },
    hasRoom: { event: 'values-log-has-room', text: 'changes of durable values are accepted' },
    quietMs,
  });
  const timer = setInterval(() => {
    plane.stats().then(
      (stats) => {
        const { descriptorsMissed } = stats;
        if (fullLogs(stats) > 0) disk.full();
        else disk.hasRoom();
        if (descriptorsMissed > missed)
          log.error(
            `no file descriptors are left for memory of tables (EMFILE), and changes fail with ERR_NO_MEMORY: ${RAISE_DESCRIPTORS}`,
            { event: 'descriptors-missed', count: descriptorsMissed },
          );
        missed = descriptorsMissed;
        const all = look(stats);
        const now = nowMs();
        if (all <= refused || now - saidMs < quietMs) return;
        const count = all - refused;
        log.warn(
          `${count === 1 ? '1 change was' : `${count} changes were`} refused, for there was no room for ${count === 1 ? 'it' : 'them'} (ERR_TABLE_FULL): farkv status says which server, shard or disk is full, and what helps${limitText(stats)}`,
          { event: 'changes-refused', count },
        );
        refused = all;
        saidMs = now;
      },
      () => clearInterval(timer),
    );
  }, lookMs).unref();
  return {
    refusedAgoMs: (stats) => {
      look(stats);
      const agoMs = Math.round(nowMs() - seenMs);
      return agoMs < LATELY_MS ? agoMs : undefined;
    },
  };
}
