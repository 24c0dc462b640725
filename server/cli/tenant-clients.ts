/**
 * The clients of a command that is about several tenants: one as the connection's options say, and one for each
 * --tenant-token-file. A server tells each which tenant its token opens.
 */
import type { Argv } from 'yargs';
import type { BufferValue, Client } from '../../client/index.js';
import { FarkvError } from '../../core/errors.js';
import { transferClient, type TransferClient } from '../../tools/transfer/transfer-client.js';
import { readSecretFile } from '../config/secret-file.js';
import { clientOptions, connectWith, namespaceOf, type ClientArguments } from './client-options.js';

export interface TenantsArguments extends ClientArguments {
  readonly tenantTokenFile: readonly string[] | undefined;
}

export function tenantsOptions<T>(y: Argv<T>): Argv<T & TenantsArguments> {
  return clientOptions(y)
    .hide('namespace')
    .option('tenant-token-file', {
      type: 'string',
      array: true,
      nargs: 1,
      describe:
        'File with the token of one more tenant, its first line; for its owner alone, mode 600. May be said several times',
    }) as unknown as Argv<T & TenantsArguments>;
}

/** Connects, does something, and disconnects whatever happened. */
export async function withTenants<T>(
  args: TenantsArguments,
  work: (clients: readonly TransferClient[]) => Promise<T>,
): Promise<T> {
  if (namespaceOf(args.namespace) !== 0)
    throw new FarkvError('ERR_CONFIG', '--namespace: a backup has all namespaces; farkv export writes one');
  const clients: Client<BufferValue, Buffer>[] = [];
  try {
    clients.push(await connectWith(args));
    for (const file of args.tenantTokenFile ?? []) {
      const [token] = readSecretFile(file, '--tenant-token-file');
      clients.push(await connectWith({ ...args, token, tokenFile: undefined }));
    }
    return await work(await Promise.all(clients.map(transferClient)));
  } finally {
    for (const client of clients) await client.close();
  }
}
