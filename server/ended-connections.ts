/** Lines of the log about clients' connections that the data plane ended. */
import { toHex64 } from '../core/hex64.js';
import { endText } from '../core/protocol/end-reason.js';
import type { DataPlane } from '../native/data-plane.js';
import { RateLimitedLog, type Log } from './log.js';

export function reportEnds(plane: Pick<DataPlane, 'onEnded'>, log: Log): void {
  const lines = new RateLimitedLog((text, fields) => log.warn(text, fields));
  plane.onEnded = ({ client, worker, provider, why, requests }) => {
    const id = toHex64(client);
    lines.say(
      `worker ${worker} ended the ${provider} connection of client ${id}: ${endText(why)}. ` +
        `${requests} of its requests were at this worker; farkv clients shows who it is`,
      { event: 'connection-ended', client: id, transport: provider, worker, why, requests },
    );
  };
}
