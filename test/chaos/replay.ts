/** The command that makes the faults of a run again. */
import { levelOf } from './copy-faults.js';
import type { RunOptions } from './run.js';

export function replayOf(options: Omit<RunOptions, 'say' | 'operationsMin'>): string {
  const { seconds, seed, servers, clients, transport, operationsPerSecond, tls, copies, ownerLeaseMs, only } = options;
  const device = transport === 'verbs' ? `FARKV_RDMA_DEVICE=${process.env.FARKV_RDMA_DEVICE ?? ''} ` : '';
  const more = [
    ...(tls ? ['--tls'] : []),
    ...(copies === undefined
      ? []
      : [
          `--level ${copies.durable === true ? 'durable' : levelOf(copies)} --replicas ${copies.replicas} --min-in-sync ${copies.minInSync}`,
        ]),
    ...(copies?.syncMs === undefined ? [] : [`--sync ${copies.syncMs}`]),
    `--owner-lease-ms ${ownerLeaseMs}`,
    ...(options.electionMs === undefined ? [] : [`--election-ms ${options.electionMs}`]),
    ...(only === undefined ? [] : [`--faults ${only.join(',')}`]),
  ];
  return `${device}node dist/test/chaos/main.js --seconds ${seconds} --seed ${seed} --servers ${servers} --clients ${clients} --transport ${transport} --rate ${operationsPerSecond} ${more.join(' ')}`;
}
