/**
 * A cluster's status, asked for over a control connection as `farkv status` does. What one server shows is what it has
 * heard of by then: another one's change reaches it with the next message of the leader, and a server that a busy
 * machine lets wait for a second is shown as unreachable. So what must become so is waited for (statusWhen), and
 * statusOf is for what cannot change meanwhile.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { ControlClient } from '../../net/control-client.js';
import type { ClusterStatus } from '../../server/status.js';
import type { Cluster } from './cluster.js';

/** Beside the address, where a server wants it. */
export interface Access {
  readonly token?: string;
  readonly ca?: Buffer;
}

/** How long a server may take; only to end a test that hangs. */
const PATIENCE_MS = 120_000;
/** Each look makes the servers count and answer: those that are in a hurry do not get there sooner. */
const LOOK_MS = 20;

async function asking<T>(
  address: string,
  { token, ca }: Access,
  use: (call: (method: string, args: unknown) => Promise<unknown>) => Promise<T>,
): Promise<T> {
  const client = await ControlClient.open({
    address,
    trust: ca === undefined ? undefined : { value: { ca } },
    timeoutMs: PATIENCE_MS,
    hello: { role: 'admin', ...(token === undefined ? {} : { token }) },
  });
  try {
    return await use((method, args) => client.call(method, args, PATIENCE_MS));
  } finally {
    client.close();
  }
}

/** What a command for operators asks for, at once and without waiting for what comes of it. */
export async function operator(address: string, method: string, args: unknown): Promise<void> {
  await asking(address, {}, (call) => call(method, args));
}

/** Looks until the condition holds. */
export async function statusWhen(
  address: string,
  condition: (status: ClusterStatus) => boolean,
  access: Access = {},
): Promise<ClusterStatus> {
  return await asking(address, access, async (call) => {
    for (;;) {
      const status = (await call('status', {})) as ClusterStatus;
      if (condition(status)) return status;
      await sleep(LOOK_MS);
    }
  });
}

export async function statusOf(address: string, access: Access = {}): Promise<ClusterStatus> {
  return await statusWhen(address, () => true, access);
}

/** Every server answers, and every shard is served. */
export function whole(status: ClusterStatus): boolean {
  return status.leader !== undefined && status.members.every((m) => m.state === 'up') && served(status);
}

export function served(status: ClusterStatus): boolean {
  return status.shards.every((s) => s.state === 'serving');
}

/** Every shard is served, and has all copies that it is to have, in sync. */
export function copied({ shards }: ClusterStatus): boolean {
  return shards.every(
    ({ state, copies }) =>
      state === 'serving' &&
      copies !== undefined &&
      copies.inSync >= copies.wanted &&
      copies.copies.every((one) => one.state === 'in-sync'),
  );
}

/** Index of the server that leads the metadata group, as server `asked` sees it. */
export async function leaderOf(cluster: Cluster, asked = 0): Promise<number> {
  const { leader } = await statusWhen(cluster.server(asked).address, (s) => s.leader !== undefined);
  return cluster.servers.findIndex((s) => s.id === leader);
}
