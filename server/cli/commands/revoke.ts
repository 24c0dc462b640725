/** `farkv revoke`: ends what clients were let in for, at once. */
import { FarkvError } from '../../../core/errors.js';
import type { CliCommand } from '../command.js';
import { withCluster } from '../cluster.js';
import { connectionOptions, readConnection, type ConnectionArguments } from '../connection.js';
import { exitCodesHelp } from '../exit-codes.js';
import { print } from '../output.js';

interface RevokeArguments extends ConnectionArguments {
  readonly client: string | undefined;
  readonly tenant: string | undefined;
}

async function handler(args: RevokeArguments): Promise<void> {
  const { client, tenant } = args;
  if ((client === undefined) === (tenant === undefined))
    throw new FarkvError('ERR_CONFIG', 'farkv revoke takes --client or --tenant');
  if (client !== undefined && !/^[0-9a-f]{16}$/.test(client))
    throw new FarkvError('ERR_CONFIG', '--client is an id of 16 hexadecimal digits, as farkv clients shows it');
  await withCluster(readConnection(args), async (cluster) => {
    await cluster.call('tickets-revoke', client === undefined ? { tenant } : { client });
  });
  print('revoked: their connections end, and earlier tickets open nothing. Who has a token may come back with it.\n');
}

const command: CliCommand<RevokeArguments> = {
  command: 'revoke',
  describe: 'End the connections of a client or of a tenant, and make their tickets worthless',
  builder: (y) =>
    connectionOptions(y)
      .option('client', { type: 'string', describe: 'Id of a client, as farkv clients shows it' })
      .option('tenant', { type: 'string', describe: "Name of a tenant; '' is the default one" })
      .example('$0 revoke --tenant a', 'after its tokens were exchanged')
      .example('$0 revoke --client 0123456789abcdef', 'one client: farkv clients lists them')
      .epilogue(exitCodesHelp({ done: 'revoked', failed: 'refused' })),
  handler,
};
export default command;
