/**
 * `farkv secrets`: a directory with an authority, certificates and tokens, for `farkv server --secrets DIR` and for
 * commands; its certificates made anew; and the exchange of the ticket secret.
 */
import { randomBytes } from 'node:crypto';
import { chmodSync, closeSync, existsSync, mkdirSync, openSync, writeSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import type { Argv } from 'yargs';
import { FarkvError } from '../../../core/errors.js';
import {
  ANY_SERVER,
  CERTIFICATE_ROLES,
  formatRoleName,
  isPlainName,
  parseRoleName,
  type CertificateRole,
  type RoleName,
} from '../../../core/role-name.js';
import { host } from '../../config/option-values.js';
import { AUTHORITY, certificateOf, SERVER, TOKEN_NAMES } from '../../config/secrets-directory.js';
import type { Issue } from '../../secrets/authority.js';
import type { CliCommand } from '../command.js';
import { INTEGER_OPTION, integerOf } from '../client-options.js';
import { withCluster } from '../cluster.js';
import { connectionOptions, readConnection, type ConnectionArguments } from '../connection.js';
import { exitCodesHelp } from '../exit-codes.js';
import { print } from '../output.js';
import { table } from '../table.js';

interface DirectoryArguments {
  readonly directory: string;
}
interface InitArguments extends DirectoryArguments {
  readonly cluster: string;
  readonly server: readonly string[] | undefined;
  readonly host: readonly string[] | undefined;
  readonly days: number;
  readonly tokensOnly: boolean;
  readonly oneIdentityForAllServers: boolean;
}
interface IssueArguments extends DirectoryArguments {
  readonly role: CertificateRole;
  readonly name: string;
  readonly tenant: string | undefined;
  readonly host: readonly string[] | undefined;
  readonly days: number;
}
interface RenewArguments extends DirectoryArguments {
  readonly within: string | undefined;
  readonly days: number | undefined;
  readonly authority: boolean;
}

const TOKEN_BYTES = 32;
const DAYS = 365;
const DAY_MS = 86_400_000;

function bad(text: string, cause?: unknown): FarkvError {
  return new FarkvError('ERR_CONFIG', text, cause === undefined ? undefined : { cause });
}

const tokenExists = (path: string, cause?: unknown): FarkvError =>
  bad(`${path} exists: a token is exchanged by adding a line to it, and taking the old one out later`, cause);

/** Nothing that is there is written over: whoever uses it would be locked out. */
function makeToken(path: string): void {
  let file: number;
  try {
    file = openSync(path, 'wx', 0o600);
  } catch (cause) {
    const there = (cause as NodeJS.ErrnoException).code === 'EEXIST';
    throw there ? tokenExists(path, cause) : bad(`${path} cannot be written: ${(cause as Error).message}`, cause);
  }
  writeSync(file, `${randomBytes(TOKEN_BYTES).toString('base64url')}\n`);
  closeSync(file);
}

function checkDays(days: number): void {
  if (!Number.isInteger(days) || days < 1 || days > AUTHORITY_DAYS_MOST)
    throw bad(`--days: must be from 1 to ${AUTHORITY_DAYS_MOST}`);
}
/** An authority's certificate lasts ten years. */
const AUTHORITY_DAYS_MOST = 3649;

/** For a certificate: no ports, and no zone of an address. Throws ERR_CONFIG; an empty item is no host. */
function hostsOf(option: string, given: readonly string[]): string[] {
  return given
    .flatMap((list) => list.split(','))
    .map((item) => {
      try {
        const name = host(item.trim());
        if (name.includes('%')) throw new Error(`"${item}": a certificate has addresses without a zone`);
        return name;
      } catch (cause) {
        throw bad(`${option}: ${(cause as Error).message}`, cause);
      }
    });
}

/** `s1` or `s1=10.0.0.1,db1.example.net`; `others`: of a server without hosts of its own. */
function serverIssue(cluster: string, text: string, others: readonly string[], days: number): Issue {
  const [, id = '', hosts] = /^([^=]*)(?:=(.*))?$/s.exec(text) ?? [];
  if (!isPlainName(id)) throw bad(`--server ${text}: ID or ID=HOST,HOST is expected`);
  return {
    file: `${SERVER}-${id}`,
    name: { cluster, role: 'peer', name: id },
    hosts: hosts === undefined ? others : hostsOf(`--server ${text}`, [hosts]),
    days,
  };
}

const localHosts = (): string[] => [...new Set([hostname(), 'localhost', '127.0.0.1', '::1'])];

/** Whoever has what one server shows is that server. So each has its own, unless somebody says that it need not. */
function checkServers({ server, oneIdentityForAllServers, tokensOnly }: InitArguments): void {
  const ways = [server !== undefined, oneIdentityForAllServers, tokensOnly].filter(Boolean).length;
  if (ways > 1) throw bad('--server, --one-identity-for-all-servers and --tokens-only exclude each other');
  if (ways === 0)
    throw bad(
      'which servers? Name each with --server: --server s1 --server s2 --server s3. With --one-identity-for-all-servers there is one certificate for all, and whoever has it is every server',
    );
}

/** The certificates that `init` will make beside the authority. Throws before there is a file of them. */
function plannedCertificates({ directory, cluster, server, host: named, days }: InitArguments): Issue[] {
  if (!isPlainName(cluster)) throw bad(`--cluster ${cluster}: letters, digits, . _ -, at most 63`);
  checkDays(days);
  const others = named === undefined ? localHosts() : hostsOf('--host', named);
  const servers =
    server === undefined
      ? [{ file: SERVER, name: { cluster, role: 'peer', name: ANY_SERVER } as RoleName, hosts: others, days }]
      : server.map((one) => serverIssue(cluster, one, others, days));
  const twice = servers.find(({ file }, i) => servers.findIndex((one) => one.file === file) !== i);
  if (twice !== undefined)
    throw bad(`--server ${twice.name.name} is named twice: its hosts go into one, --server ID=HOST,HOST`);
  const clients = CERTIFICATE_ROLES.filter((role) => role !== 'peer').map((role) => ({
    file: role,
    name: { cluster, role, name: role },
    hosts: [],
    days,
  }));
  const all = [...servers, ...clients];
  const there = [AUTHORITY, ...all.map((one) => one.file)].find((name) => existsSync(certificateOf(directory, name)));
  if (there !== undefined)
    throw bad(
      `${certificateOf(directory, there)} exists: certificates are made anew with farkv secrets renew ${directory}`,
    );
  return all;
}

async function makeCertificates({ directory, cluster }: InitArguments, all: readonly Issue[]): Promise<string[]> {
  const { issue, makeAuthority } = await import('../../secrets/authority.js');
  await makeAuthority(directory, cluster);
  for (const one of all) await issue(directory, one);
  return [AUTHORITY, ...all.map((one) => one.file)].map((name) => certificateOf(directory, name));
}

async function init(args: InitArguments): Promise<void> {
  const { directory, server, tokensOnly } = args;
  checkServers(args);
  // A token of servers is that of every server: beside certificates with names it would open what they close.
  const tokens = TOKEN_NAMES.filter((name) => name !== 'peer-token' || server === undefined);
  const there = tokens.map((name) => join(directory, name)).find((path) => existsSync(path));
  if (there !== undefined) throw tokenExists(there);
  // With half of the files made, the corrected command would find the tokens of the first one.
  const planned = tokensOnly ? [] : plannedCertificates(args);
  try {
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    chmodSync(directory, 0o700);
  } catch (cause) {
    throw bad(`${directory} cannot be made: ${(cause as Error).message}`, cause);
  }
  for (const name of tokens) makeToken(join(directory, name));
  const certificates = tokensOnly ? [] : await makeCertificates(args, planned);
  const made = [...tokens.map((name) => join(directory, name)), ...certificates];
  const copy =
    server === undefined
      ? `Copy ${directory} to every server, without ca.key and the keys of clients. Whoever has ${tokensOnly ? 'peer-token' : 'peer-token or server.key'} can act as every server\n`
      : `Copy to each server ca.crt, the tokens, and server-ID.crt with server-ID.key of its own ID: no server needs another's, nor ca.key\n`;
  print(
    `${made.join('\n')}\n${copy}` +
      `Start each: farkv server --id ID --peers ID=HOST:PORT,... --secrets ${directory}\n` +
      `Give each program ca.crt, and the token or the certificate with its key of its role: farkv get KEY --secrets DIR\n`,
  );
}

/** Each becomes a part of a role name, where a slash would begin the next part, and of a file's name. */
function checkNames(role: CertificateRole, name: string, tenant: string | undefined): void {
  const rule = 'a name has letters, digits, . _ -, at most 63, and begins with a letter or digit';
  if (!isPlainName(name) && !(role === 'peer' && name === ANY_SERVER)) throw bad(`<name> ${name}: ${rule}`);
  if (tenant !== undefined && !isPlainName(tenant)) throw bad(`--tenant ${tenant}: ${rule}`);
}

async function issueOne({ directory, role, name, tenant, host: named, days }: IssueArguments): Promise<void> {
  checkDays(days);
  const { fileOf, issue, list } = await import('../../secrets/authority.js');
  const cluster = list(directory).find((one) => one.name !== undefined)?.name?.cluster;
  if (cluster === undefined) throw bad(`${directory} has no certificates: farkv secrets init makes them`);
  checkNames(role, name, tenant); // mutation: hostile/slash-in-a-name
  const asked: RoleName = { cluster, role, name, ...(tenant === undefined ? {} : { tenant }) };
  const roleName = parseRoleName(formatRoleName(asked));
  if (roleName === undefined)
    throw bad(`--tenant ${tenant ?? ''}: a ${role} is of no tenant; tenants have writers and readers`);
  const file = fileOf(roleName);
  if (existsSync(certificateOf(directory, file)))
    throw bad(`${certificateOf(directory, file)} exists: farkv secrets renew ${directory} makes it anew`);
  const hosts = named === undefined ? (role === 'peer' ? localHosts() : []) : hostsOf('--host', named);
  await issue(directory, { file, name: roleName, hosts, days });
  print(`${certificateOf(directory, file)}\n`);
}

async function renewAll({ directory, within, days, authority }: RenewArguments): Promise<void> {
  if (days !== undefined) checkDays(days);
  const withinDays = within === undefined ? Infinity : integerOf('within', within, 0, AUTHORITY_DAYS_MOST);
  const { renew, renewAuthority } = await import('../../secrets/authority.js');
  if (authority) {
    await renewAuthority(directory);
    print(
      `${certificateOf(directory, AUTHORITY)} has another authority, and the ones before it. Copy it to every server and program; then farkv secrets renew ${directory}\n`,
    );
    return;
  }
  const files = await renew(directory, withinDays, days);
  print(
    files.length === 0
      ? 'no certificate expires within that time\n'
      : `${files.map((file) => certificateOf(directory, file)).join('\n')}\nCopy them, with their keys, to where they are used. Servers, commands and clients with files read them again; nothing restarts\n`,
  );
}

async function listAll({ directory }: DirectoryArguments): Promise<void> {
  const { list } = await import('../../secrets/authority.js');
  print(
    table(
      [{ title: 'FILE' }, { title: 'NAME' }, { title: 'HOSTS' }, { title: 'EXPIRES' }, { title: 'DAYS', right: true }],
      list(directory).map((one) => [
        `${one.file}.crt`,
        one.name === undefined ? 'authority' : formatRoleName(one.name),
        one.hosts.join(' ') || '-',
        one.expires.toISOString().slice(0, 10),
        String(Math.floor((one.expires.getTime() - Date.now()) / DAY_MS)),
      ]),
    ),
  );
}

async function rotateTickets(args: ConnectionArguments): Promise<void> {
  await withCluster(readConnection(args), async (cluster) => {
    await cluster.call('tickets-rotate', {});
  });
  print('the ticket secret was exchanged; tickets of the one before are good until the next exchange\n');
}

const ACTIONS = {
  init: 'init <directory>',
  issue: 'issue <directory> <role> <name>',
  renew: 'renew <directory>',
  list: 'list <directory>',
  'rotate-tickets': 'rotate-tickets',
} as const;

const directoryOption = (z: Argv, describe: string): Argv<DirectoryArguments> =>
  z.positional('directory', { type: 'string', demandOption: true, describe });
const daysOption = {
  type: 'number',
  requiresArg: true,
  describe: 'How long certificates are good, days, 1 to 3649',
} as const;
const hostOption = {
  type: 'string',
  array: true,
  requiresArg: true,
  describe:
    "Host name or IP address of the server's certificate, for programs that look at it. Default: those of this machine",
} as const;

const command: CliCommand<object> = {
  command: 'secrets <action>',
  describe: 'Make an authority, certificates and tokens for each role; make them anew; exchange the ticket secret',
  actions: ACTIONS,
  builder: (y) =>
    y
      .command({
        command: ACTIONS.init,
        describe: 'Make the directory: an authority, certificates of servers and of each role, and tokens',
        builder: (z: Argv) =>
          directoryOption(z, 'Made if needed, for its owner alone').options({
            cluster: {
              type: 'string',
              requiresArg: true,
              default: 'farkv',
              describe: "Name in the certificates; those of another cluster's name are refused",
            },
            server: {
              type: 'string',
              array: true,
              requiresArg: true,
              describe: 'ID or ID=HOST,HOST: a certificate for this server alone, once per server',
            },
            'one-identity-for-all-servers': {
              type: 'boolean',
              default: false,
              describe:
                'In place of --server: one certificate and one token for all servers, so whoever has one of them can act as every server',
            },
            host: hostOption,
            days: { ...daysOption, default: DAYS },
            'tokens-only': {
              type: 'boolean',
              default: false,
              describe: 'No certificates, so no TLS; the token of servers is that of every server',
            },
          }) as unknown as Argv<InitArguments>,
        handler: init,
      })
      .command({
        command: ACTIONS.issue,
        describe: 'Make one more certificate, where ca.key is',
        builder: (z: Argv) =>
          directoryOption(z, 'With ca.crt and ca.key')
            .positional('role', { choices: CERTIFICATE_ROLES, demandOption: true, describe: 'peer is a server' })
            .positional('name', { type: 'string', demandOption: true, describe: 'Of a server: its --id' })
            .options({
              tenant: { type: 'string', requiresArg: true, describe: 'Tenant of a writer or reader' },
              host: hostOption,
              days: { ...daysOption, default: DAYS },
            }) as unknown as Argv<IssueArguments>,
        handler: issueOne,
      })
      .command({
        command: ACTIONS.renew,
        describe: 'Make certificates anew, with the same names',
        builder: (z: Argv) =>
          directoryOption(z, 'With ca.crt and ca.key').options({
            within: { ...INTEGER_OPTION, describe: 'Only those that expire within so many days. Default: all' },
            days: { ...daysOption, describe: `${daysOption.describe}. Default: as before` },
            authority: {
              type: 'boolean',
              default: false,
              describe: 'Make another authority; those before it stay trusted until they are taken out of ca.crt',
            },
          }) as unknown as Argv<RenewArguments>,
        handler: renewAll,
      })
      .command({
        command: ACTIONS.list,
        describe: 'Show certificates, and when they expire',
        builder: (z: Argv) => directoryOption(z, 'With certificates'),
        handler: listAll,
      })
      .command({
        command: ACTIONS['rotate-tickets'],
        describe: 'Exchange the secret of tickets now (the leader does so every day)',
        builder: (z: Argv) => connectionOptions(z),
        handler: rotateTickets,
      })
      .demandCommand(1, 'Choose an action: init, issue, renew, list, rotate-tickets')
      .example(
        '$0 secrets init /etc/farkv/secrets --server s1 --server s2 --server s3',
        'then: farkv server --id s1 --secrets /etc/farkv/secrets',
      )
      .example('$0 secrets renew /etc/farkv/secrets --within 30', 'for a timer; nothing restarts')
      .epilogue(
        `token, writer.crt: clients. reader-token, reader.crt: clients that only read. operator-token, operator.crt: what looks at the cluster or changes it.\nmonitor-token, monitor.crt: the status, the page and the metrics. server-ID.crt: the server of that --id. peer-token, server.crt: every server.\n\n${exitCodesHelp({ done: 'made' })}`,
      ),
  handler: () => undefined,
};
export default command;
