/** Lines of the log about clients' connections that the data plane ended. */
import { endText } from '../core/protocol/end-reason.js';
import type { DataPlane } from '../native/data-plane.js';
import { RateLimitedLog, type Log } from './log.js';

export function reportEnds(plane: Pick<DataPlane, 'onEnded'>, log: Log): void {
  const lines = new RateLimitedLog((text) => log.warn(text));
  plane.onEnded = ({ client, worker, provider, why, requests }) => {
    const id = client.toString(16).padStart(16, '0');
    lines.say(
      `worker ${worker} ended the ${provider} connection of client ${id}: ${endText(why)}. ` +
        `${requests} of its requests were at this worker; farkv clients shows who it is`,
    );
  };
}
