/** Lines of the log that transports write: connections that they refuse or cut off, and what the system refuses them. */
import type { DataPlane } from '../native/data-plane.js';
import type { Log } from './log.js';

/** How often a line may come is bounded where transports write it (native/node/server_call.c). */
export function reportTransports(plane: Pick<DataPlane, 'onFabricLog'>, log: Log): void {
  plane.onFabricLog = (level, message, omitted) => {
    if (omitted > 0)
      log.event(level, `(${omitted} lines of transports were not written)`, {
        event: 'omitted',
        count: omitted,
        of: 'transport',
      });
    log.event(level, message, { event: 'transport', message });
  };
}
