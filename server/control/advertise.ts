/** Under which addresses others reach what was bound here. */
import { networkInterfaces } from 'node:os';
import { formatHostPort, isWildcard, type HostPort } from '../config/units.js';

/**
 * Addresses of this machine that another one may reach: not loopback, not link-local. Loopback when there is no other.
 */
function ownHosts(family: 'IPv4' | 'IPv6'): string[] {
  const all = Object.values(networkInterfaces()).flatMap((list) => list ?? []);
  const reachable = all
    .filter((a) => a.family === family && !a.internal && !a.address.startsWith('fe80:'))
    .map((a) => a.address);
  return reachable.length > 0 ? reachable : [family === 'IPv4' ? '127.0.0.1' : '::1'];
}

/**
 * host:port for everybody else. `advertise` replaces the hosts; without it 0.0.0.0 and [::] become the machine's
 * addresses.
 */
export function advertised(bound: readonly HostPort[], advertise: readonly string[]): string[] {
  const addresses = bound.flatMap(({ host, port }) => {
    if (advertise.length > 0) return advertise.map((name) => formatHostPort({ host: name, port }));
    if (!isWildcard(host)) return [formatHostPort({ host, port })];
    // A socket on [::] also takes IPv4, unless the system says otherwise.
    const hosts = host === '::' ? [...ownHosts('IPv6'), ...ownHosts('IPv4')] : ownHosts('IPv4');
    return hosts.map((name) => formatHostPort({ host: name, port }));
  });
  return [...new Set(addresses)];
}
