/** A doctor's report as text for a person. */
import type { RdmaDevice } from '../../native/addon.js';
import { formatSize } from '../../core/size.js';
import type { Device } from './devices.js';
import type { Report } from './diagnose.js';
import { hasHugePages } from './system.js';

/** What a process can address at all. */
const ADDRESSES = 2 ** 63;

function deviceLines(d: Device, opened: RdmaDevice | undefined): string[] {
  const lines = [
    `${d.name}  ${d.fabric}${d.firmware === '' ? '' : `  firmware ${d.firmware}`}  /dev/infiniband/${d.uverbs ?? '(none)'}`,
  ];
  if (opened?.error === undefined && opened !== undefined)
    lines.push(
      `  registers ${opened.regionsMax} regions of ${opened.regionBytesMax >= ADDRESSES ? 'any size' : `up to ${formatSize(opened.regionBytesMax)}`}; ${opened.queuePairsMax} queue pairs`,
    );
  if (d.defaultAddress !== undefined)
    lines.push(
      `  a server with this device listens at ${d.defaultAddress}, unless --listen or --fabric-listen names another of its addresses`,
    );
  for (const p of d.ports) {
    lines.push(`  port ${p.port}  ${p.state}  ${p.physicalState}  ${p.linkLayer}  ${p.rate}`);
    for (const i of p.networkInterfaces) lines.push(`    interface ${i.name}  MTU ${i.mtuBytes}  ${i.state}`);
    if (p.roceDefaults !== undefined) {
      const { mode, typeOfService } = p.roceDefaults;
      const service = typeOfService === undefined ? '' : `, type of service ${typeOfService}`;
      lines.push(`    connections are ${mode}${service}`);
    }
    for (const g of p.gids) {
      const use = g.connectionsOf === undefined ? g.unusedReason : `for connections of ${g.connectionsOf}`;
      const parts = [`GID ${g.index}`, g.gid, g.type, g.networkInterface, use];
      lines.push(`    ${parts.filter((part) => part !== undefined && part !== '').join('  ')}`);
    }
  }
  return lines;
}

/** Of native/base/region.c and native/table/segment.c: at least a segment of the index and one of the heap. */
const HUGE_PAGE_RULE =
  '--huge-pages auto: only for segments of whole 2.0 MiB, so no memory is added; require: each segment is rounded up to 2.0 MiB, at least 4.0 MiB per shard';

const limit = (bytes: number | undefined): string => (bytes === undefined ? 'unlimited' : formatSize(bytes));

export function renderReport(r: Report): string {
  const s = r.system;
  const lines = [
    `libraries     ${r.librariesMissing ?? 'libibverbs and librdmacm found'}`,
    `modules       ${Object.entries(s.modules)
      .map(([m, on]) => `${m} ${on ? 'loaded' : s.hasSys ? 'missing' : 'unknown'}`)
      .join(', ')}`,
    `locked memory soft ${limit(s.memlockSoftBytes)}, hard ${limit(s.memlockHardBytes)}${s.mayLockAnything ? ' (CAP_IPC_LOCK: no limit applies)' : ''}`,
    `huge pages    ${s.hugePages.free} free of ${s.hugePages.total}, ${formatSize(s.hugePages.sizeBytes)} each; for shared memory: ${s.shmemHugePages}${s.collapsesShmem ? ', made when a server asks' : ''}`,
    ...(hasHugePages(s) ? [`huge pages    ${HUGE_PAGE_RULE}`] : []),
    `NUMA          ${/^\d+$/.test(s.numaNodes) ? `one node (${s.numaNodes})` : `nodes ${s.numaNodes}`}`,
    `memory limit  ${s.groupMemoryBytes === undefined ? 'none' : `${limit(s.groupMemoryBytes)}, of the control group`}`,
    ...(s.rdmaNamespaces === undefined ? [] : [`namespaces    RDMA devices are ${s.rdmaNamespaces}`]),
    ...Object.entries(s.sysctls).map(([k, v]) => `sysctl        ${k} = ${v}`),
    '',
    ...(r.devices.length === 0
      ? ['no RDMA devices']
      : r.devices.flatMap((d) =>
          deviceLines(
            d,
            r.opened.find(({ name }) => name === d.name),
          ),
        )),
    '',
  ];
  for (const p of r.problems) lines.push(`${p.severity}: ${p.text}`, `  fix: ${p.mend}`);
  lines.push(r.ok ? 'ok: --transport verbs would work' : 'not ok: --transport verbs would not work; shm and tcp do');
  return `${lines.join('\n')}\n`;
}
