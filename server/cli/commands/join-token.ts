/** `farkv join-token create`: a token with which one server may join. */
import { createHash, randomBytes } from 'node:crypto';
import type { Argv } from 'yargs';
import { FarkvError } from '../../../core/errors.js';
import { JOIN_TOKEN_TTL_MAX_MS } from '../../../core/metadata/join-tokens.js';
import type { CliCommand } from '../command.js';
import { durationOf } from '../client-options.js';
import { withCluster } from '../cluster.js';
import { connectionOptions, readConnection, type ConnectionArguments } from '../connection.js';
import { exitCodesHelp } from '../exit-codes.js';
import { print, printError } from '../output.js';

interface CreateArguments extends ConnectionArguments {
  readonly ttl: string;
}

const TOKEN_BYTES = 32;

/** The token is made here: the cluster is told its hash, and nobody but the reader of this output has it. */
async function create(args: CreateArguments): Promise<void> {
  const ttlMs = durationOf('ttl', args.ttl);
  if (ttlMs < 1000 || ttlMs > JOIN_TOKEN_TTL_MAX_MS)
    throw new FarkvError('ERR_CONFIG', '--ttl: must be from 1s to 168h');
  const token = randomBytes(TOKEN_BYTES).toString('base64url');
  const hash = createHash('sha256').update(token, 'utf8').digest('hex');
  await withCluster(readConnection(args), (cluster) => cluster.call('join-token-add', { hash, ttlMs }));
  print(`${token}\n`);
  printError(
    `good for one join, within ${args.ttl}: put it into a file of mode 600, and start the server with --join and --join-token-file\n`,
  );
}

const ACTIONS = { create: 'create' } as const;

const command: CliCommand<ConnectionArguments> = {
  command: 'join-token <action>',
  describe: 'Make a token with which one server may join the cluster',
  actions: ACTIONS,
  builder: (y) =>
    connectionOptions(y)
      .command({
        command: ACTIONS.create,
        describe: 'Print a new token: it is good for one join',
        builder: (z: Argv<ConnectionArguments>) =>
          z.option('ttl', {
            type: 'string',
            requiresArg: true,
            default: '1h',
            describe: 'How long it is good: 10m, 1h, 24h; at most 168h',
          }) as Argv<CreateArguments>,
        handler: create,
      })
      .demandCommand(1, 'Choose an action: create')
      .example('(umask 077; $0 join-token create > token)', 'then: farkv server --join ... --join-token-file token')
      .epilogue(exitCodesHelp({ done: 'made', failed: 'refused' })),
  handler: () => undefined,
};
export default command;
