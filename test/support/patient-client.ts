/** A client whose calls wait as long as the test wants, by one transport alone. Not for: calls that are to time out. */
import type { ExecutionContext } from 'ava';
import { connect, type BufferValue, type Client, type ConnectOptions } from '../../client/index.js';
import type { Cluster } from './cluster.js';

/** Closed at the end of the test. */
export async function patientClient(
  t: Pick<ExecutionContext, 'teardown'>,
  { addresses }: Pick<Cluster, 'addresses'>,
  transport: 'shm' | 'tcp',
  more: Pick<ConnectOptions, 'tls'> = {},
): Promise<Client<BufferValue, Buffer>> {
  const kv = await connect({
    servers: addresses,
    transport,
    strict: true,
    unavailableAfterMs: Infinity,
    timeoutMs: 600_000,
    ...more,
  });
  t.teardown(() => kv.close());
  return kv;
}
