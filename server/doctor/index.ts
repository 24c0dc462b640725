/** Examines this host for RDMA: the facts, what is wrong, and how to mend it. */
import { addon } from '../../native/addon.js';
import { findDevices } from './devices.js';
import { diagnose, type Report } from './diagnose.js';
import { readSystem } from './system.js';

export { renderReport } from './render.js';
export type { Report, Problem } from './diagnose.js';

/** `memoryBytes`: how much a server here would register. */
export function examineHost(memoryBytes: number): Report {
  const devices = findDevices('/', addon.rdmaAddresses());
  const interfaces = devices.flatMap((d) => d.ports.flatMap((p) => p.networkInterfaces.map((i) => i.name)));
  return diagnose({
    librariesMissing: addon.providerMissing('verbs'),
    devices,
    opened: addon.rdmaDevices(),
    system: readSystem('/', [...new Set(interfaces)]),
    memoryBytes,
  });
}
