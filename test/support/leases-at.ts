/** Leases as a leader has granted them, for tests of what it does. */
import { GrantedLeases, heldMs } from '../../core/metadata/owner-leases.js';
import { LEASE } from './metadata-log.js';

export const HELD = heldMs(LEASE);

/** Leases of a leader whom a quorum confirmed again and again from 0 on; `asked`: who was given a lease when. */
export function leasesAt(nowMs: number, asked: Readonly<Record<number, readonly string[]>> = {}): GrantedLeases {
  const leases = new GrantedLeases(LEASE, 0);
  const times = [
    ...Array.from({ length: Math.ceil(nowMs / 100) }, (_, i) => 100 * i),
    ...Object.keys(asked).map(Number),
    nowMs,
  ];
  for (const at of times.sort((a, b) => a - b)) {
    leases.confirmed(at);
    for (const id of asked[at] ?? []) leases.grant(id, at);
  }
  return leases;
}
