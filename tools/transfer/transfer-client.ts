/** What transfers need of a client: its namespaces, and its access to single shards. */
import type { ShardAccess } from '../../client/client.js';
import type { BufferValue, Client } from '../../client/index.js';

export type TransferClient = Pick<Client<BufferValue, Buffer>, 'namespace'> & ShardAccess;

/** Loads the SDK only now: the help of commands works where the addon does not load. */
export async function transferClient(client: Client<BufferValue, Buffer>): Promise<TransferClient> {
  const { shardAccessOf } = await import('../../client/client.js');
  return { namespace: (namespace) => client.namespace(namespace), ...shardAccessOf(client) };
}
