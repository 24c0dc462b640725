/**
 * What else of the host matters to RDMA: kernel modules, limits of memory, huge pages, namespaces, sysctls. Reads files
 * only.
 */
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { list, readLine } from './devices.js';

export interface System {
  /** /sys is mounted: else what comes from there is unknown. */
  readonly hasSys: boolean;
  /** Of those that verbs needs: which are loaded or built in. */
  readonly modules: Readonly<Record<string, boolean>>;
  /** RLIMIT_MEMLOCK of this process in bytes; undefined: unlimited. */
  readonly memlockSoftBytes: number | undefined;
  readonly memlockHardBytes: number | undefined;
  /** The process may lock what it likes whatever the limit (CAP_IPC_LOCK). */
  readonly mayLockAnything: boolean;
  readonly hugePages: { readonly sizeBytes: number; readonly total: number; readonly free: number };
  /** Transparent huge pages for shared memory: what `regions` can get without reserved pages. */
  readonly shmemHugePages: string;
  /** The kernel makes huge pages of shared memory when it is asked to: since 6.1, whatever the setting but `deny`. */
  readonly collapsesShmem: boolean;
  /** As the kernel lists them: `0`, `0-1`. */
  readonly numaNodes: string;
  /** The least memory that a control group of this process may have, with page cache and tables; undefined: no limit. */
  readonly groupMemoryBytes: number | undefined;
  /**
   * Whether all network namespaces see a device, or only its own (`rdma system`); undefined: the kernel does not say.
   */
  readonly rdmaNamespaces: 'shared' | 'exclusive' | undefined;
  readonly sysctls: Readonly<Record<string, string>>;
}

/** Whether segments of tables can have huge pages: reserved ones, or those that the kernel makes. */
export const hasHugePages = ({ hugePages, collapsesShmem }: System): boolean => hugePages.free > 0 || collapsesShmem;

const neededModules = ['ib_core', 'ib_uverbs', 'rdma_cm', 'rdma_ucm'];
/**
 * With several interfaces in one subnet these decide which of them answers: wrong ones make RoCE connections time out.
 */
const perInterface = ['rp_filter', 'arp_ignore', 'arp_announce'];
const capIpcLock = 1n << 14n;

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

function memlock(limits: string): [number | undefined, number | undefined] {
  const line = /^Max locked memory\s+(\S+)\s+(\S+)/m.exec(limits);
  const bytes = (text: string | undefined): number | undefined =>
    text === undefined || text === 'unlimited' ? undefined : Number(text);
  return [bytes(line?.[1]), bytes(line?.[2])];
}

/** The limits of the process's control group and of all above it, which count too: version 2, else version 1. */
function groupMemory(root: string): number | undefined {
  const lines = readText(join(root, 'proc/self/cgroup')).split('\n');
  const pathIn = (controllers: RegExp): string | undefined =>
    lines.find((line) => controllers.test(line))?.replace(/^\d+:[^:]*:/, '');
  const limits: number[] = [];
  const collect = (mount: string, path: string | undefined, file: string): void => {
    for (let at = path; at !== undefined; at = at === '/' ? undefined : dirname(at)) {
      const limit = Number(readLine(join(root, mount, at, file)) ?? NaN);
      // Version 1 has a number that no machine has in the place of none.
      if (Number.isFinite(limit) && limit < 2 ** 60) limits.push(limit);
    }
  };
  collect('sys/fs/cgroup', pathIn(/^0::/), 'memory.max');
  collect('sys/fs/cgroup/memory', pathIn(/^\d+:([^:]*,)?memory[,:]/), 'memory.limit_in_bytes');
  return limits.length === 0 ? undefined : Math.min(...limits);
}

export function readSystem(root: string, interfaces: readonly string[]): System {
  const [memlockSoftBytes, memlockHardBytes] = memlock(readText(join(root, 'proc/self/limits')));
  const meminfo = readText(join(root, 'proc/meminfo'));
  const field = (name: string): number => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(meminfo)?.[1] ?? 0);
  const effective = /^CapEff:\s+([0-9a-f]+)/m.exec(readText(join(root, 'proc/self/status')))?.[1] ?? '0';
  const loaded = list(join(root, 'sys/module'));
  const sysctls: Record<string, string> = {};
  for (const name of interfaces) {
    for (const key of perInterface) {
      const value = readLine(join(root, 'proc/sys/net/ipv4/conf', name, key));
      if (value !== undefined) sysctls[`net.ipv4.conf.${name}.${key}`] = value;
    }
  }
  const [major = 0, minor = 0] = (readLine(join(root, 'proc/sys/kernel/osrelease')) ?? '').split('.').map(Number);
  const shmemHugePages =
    /\[(\w+)\]/.exec(readLine(join(root, 'sys/kernel/mm/transparent_hugepage/shmem_enabled')) ?? '')?.[1] ?? 'unknown';
  const rdmaNamespaces = readLine(join(root, 'sys/module/ib_core/parameters/netns_mode'));
  return {
    hasSys: list(join(root, 'sys')).length > 0,
    modules: Object.fromEntries(neededModules.map((m) => [m, loaded.includes(m)])),
    memlockSoftBytes,
    memlockHardBytes,
    mayLockAnything: (BigInt(`0x${effective}`) & capIpcLock) !== 0n,
    hugePages: {
      sizeBytes: field('Hugepagesize') * 1024,
      total: field('HugePages_Total'),
      free: field('HugePages_Free'),
    },
    shmemHugePages,
    collapsesShmem: (major > 6 || (major === 6 && minor >= 1)) && !['deny', 'unknown'].includes(shmemHugePages),
    numaNodes: readLine(join(root, 'sys/devices/system/node/online')) ?? '0',
    groupMemoryBytes: groupMemory(root),
    rdmaNamespaces: rdmaNamespaces === undefined ? undefined : rdmaNamespaces === 'Y' ? 'shared' : 'exclusive',
    sysctls,
  };
}
