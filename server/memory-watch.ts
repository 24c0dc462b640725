/**
 * Lines of the log about memory that tables did not get: changes that were refused for want of it, and descriptors that
 * were missed for it.
 */
import type { DataPlane } from '../native/data-plane.js';
import type { DataPlaneStats } from '../native/data-plane-stats.js';
import { RAISE_DESCRIPTORS } from './descriptors.js';
import type { Log } from './log.js';

const LOOK_MS = 10_000;
/** Between two lines about refused changes. */
const QUIET_MS = 60_000;

const refusals = ({ workers }: DataPlaneStats): number =>
  workers.reduce((sum, { refused }) => sum + (refused.ERR_TABLE_FULL ?? 0), 0);

/** Looks until the data plane is closed. */
export function watchMemory(plane: Pick<DataPlane, 'stats'>, log: Log, lookMs = LOOK_MS, quietMs = QUIET_MS): void {
  let missed = 0;
  let refused = 0;
  let saidMs = -Infinity;
  const timer = setInterval(() => {
    plane.stats().then(
      (stats) => {
        const { descriptorsMissed } = stats;
        if (descriptorsMissed > missed)
          log.error(
            `no file descriptors are left for memory of tables (EMFILE), and changes fail with ERR_NO_MEMORY: ${RAISE_DESCRIPTORS}`,
            { event: 'descriptors-missed', count: descriptorsMissed },
          );
        missed = descriptorsMissed;
        const all = refusals(stats);
        const now = performance.now();
        if (all === refused || now - saidMs < quietMs) return;
        const count = all - refused;
        log.warn(
          `${count === 1 ? '1 change was' : `${count} changes were`} refused, for there was no room for ${count === 1 ? 'it' : 'them'} (ERR_TABLE_FULL): farkv status says which server, shard or disk is full, and what helps`,
          { event: 'changes-refused', count },
        );
        refused = all;
        saidMs = now;
      },
      () => clearInterval(timer),
    );
  }, lookMs).unref();
}
