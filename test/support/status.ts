/** A cluster's status as `farkv status --json` prints it. */
import type { ClusterStatus } from '../../server/status.js';
import { farkv, type Cluster } from './cluster.js';

export async function statusOf(address: string, args: readonly string[] = []): Promise<ClusterStatus> {
  const { stdout, stderr } = await farkv(['status', '--json', '--connect', address, ...args]);
  if (stdout === '') throw new Error(stderr);
  return JSON.parse(stdout) as ClusterStatus;
}

/** Index of the server that leads the metadata group, as server `asked` sees it. */
export async function leaderOf(cluster: Cluster, asked = 0): Promise<number> {
  const status = await statusOf(cluster.server(asked).address);
  return cluster.servers.findIndex((s) => s.id === status.leader);
}
