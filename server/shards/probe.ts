/** Whether a server has ended, seen from outside: nobody listens at its control port any more. */
import { connect } from 'node:net';
import { parseHostPort } from '../../core/address.js';

/** Longer silence says nothing. */
const PROBE_MS = 1000;

/** Rejects when nobody listens at any of these addresses; one that does not answer may be there. */
export async function probe(addresses: readonly string[]): Promise<void> {
  if (addresses.length === 0) return;
  await Promise.any(addresses.map(probeOne));
}

function probeOne(address: string): Promise<void> {
  const { host, port } = parseHostPort(address);
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port, timeout: PROBE_MS });
    const end = (error?: NodeJS.ErrnoException): void => {
      socket.destroy();
      if (error?.code === 'ECONNREFUSED') reject(error);
      else resolve();
    };
    socket.once('connect', () => end());
    socket.once('timeout', () => end());
    socket.once('error', end);
  });
}
