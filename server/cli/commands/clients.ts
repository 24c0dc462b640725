/** `farkv clients`: who is connected. Each server is asked for its own clients. */
import type { Argv } from 'yargs';
import { FarkvError } from '../../../core/errors.js';
import { visibleJson } from '../../../core/visible-text.js';
import { checkClientPage, type ClientEntry } from '../../control/client-list.js';
import type { ClusterStatus } from '../../status.js';
import type { CliCommand } from '../command.js';
import { integerOf, integerOption } from '../client-options.js';
import { withCluster } from '../cluster.js';
import { connectionOptions, readConnection, type Connection, type ConnectionArguments } from '../connection.js';
import { exitCodesHelp } from '../exit-codes.js';
import { print } from '../output.js';
import { table } from '../table.js';

interface ClientsArguments extends ConnectionArguments {
  readonly tenant: string | undefined;
  readonly limit: string;
  readonly json: boolean;
}

const LIMIT = { usual: 1000, most: 100_000 } as const;

export interface ConnectedClient extends Omit<ClientEntry, 'number' | 'sinceMs'> {
  readonly server: string;
  /** ISO 8601, by the server's clock. */
  readonly since: string;
}

export interface ClientsReport {
  readonly clients: readonly ConnectedClient[];
  /** Of the servers that answered: more than are listed where --limit was reached. */
  readonly count: number;
  /** Servers that did not say who is connected to them. */
  readonly missing: readonly { readonly server: string; readonly reason: string }[];
}

export function renderClients({ clients, count, missing }: ClientsReport): string {
  const rows = table(
    ['CLIENT', 'TENANT', 'ROLE', 'NAME', 'ADDRESS', 'TLS', 'SERVER', 'SINCE'].map((title) => ({ title })),
    clients.map((c) => [c.id, c.tenant || '-', c.access, c.name, c.address, c.tls ? 'yes' : 'no', c.server, c.since]),
  );
  const more = count > clients.length ? `${count - clients.length} more: see --limit and --tenant\n` : '';
  return `${rows}${more}${missing.map(({ server, reason }) => `${server} did not answer: ${reason}\n`).join('')}`;
}

/** Adds the clients of one server to `found`, until there are `limit`. Returns how many the server has. */
async function askServer(
  connection: Connection,
  { id, control }: ClusterStatus['members'][number],
  { tenant, limit }: { readonly tenant: string | undefined; readonly limit: number },
  found: ConnectedClient[],
): Promise<number> {
  return await withCluster({ ...connection, addresses: control }, async (server) => {
    for (let after = 0; ;) {
      const query = { after, ...(tenant === undefined ? {} : { tenant }) };
      const page = checkClientPage(await server.call('clients', query), 'clients');
      for (const { number: _, sinceMs, ...client } of page.clients.slice(0, limit - found.length))
        found.push({ ...client, server: id, since: new Date(sinceMs).toISOString() });
      if (page.next === undefined || found.length >= limit) return page.count;
      if (page.next <= after)
        throw new FarkvError('ERR_PROTOCOL', 'its list of clients does not come to an end: the same page comes again');
      after = page.next;
    }
  });
}

async function report(args: ClientsArguments): Promise<ClientsReport> {
  const { tenant } = args;
  const limit = integerOf('limit', args.limit, 1, LIMIT.most);
  const connection = readConnection(args);
  const { members } = await withCluster(connection, (cluster) => cluster.status());
  const clients: ConnectedClient[] = [];
  const missing: { server: string; reason: string }[] = [];
  let count = 0;
  for (const member of members) {
    if (member.control.length === 0) continue; // It has never come, so nobody is connected to it.
    try {
      count += await askServer(connection, member, { tenant, limit }, clients);
    } catch (error) {
      if (!(error instanceof FarkvError) || error.code === 'ERR_UNAUTHORIZED') throw error;
      missing.push({ server: member.id, reason: error.message });
    }
  }
  return { clients, count, missing };
}

async function handler(args: ClientsArguments): Promise<void> {
  const found = await report(args);
  print(args.json ? `${visibleJson(found, 2)}\n` : renderClients(found));
  if (found.missing.length > 0) process.exitCode = 1;
}

const command: CliCommand<ClientsArguments> = {
  command: 'clients',
  describe: 'Show the clients that are connected: id, tenant, role, credential, address, server, since when',
  builder: (y): Argv<ClientsArguments> =>
    connectionOptions(y)
      .option('tenant', { type: 'string', describe: "Clients of this tenant; '' is the default one" })
      .option('limit', { ...integerOption(LIMIT.usual), describe: `List at most so many, up to ${LIMIT.most}` })
      .option('json', {
        type: 'boolean',
        default: false,
        describe: 'Print a JSON document; its field names are stable',
      })
      .example('$0 clients', 'who is connected; for operators alone')
      .example('$0 clients --tenant a --json | jq -r .clients[].id', 'ids for farkv revoke --client')
      .epilogue(exitCodesHelp({ done: 'every server answered', failed: 'a server did not answer' })),
  handler,
};
export default command;
