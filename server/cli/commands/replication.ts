/** `farkv replication`: how many servers keep each value, by tenant. */
import type { Argv } from 'yargs';
import { FarkvError } from '../../../core/errors.js';
import { COPIES_MAX } from '../../../core/metadata/check-state.js';
import type { Policy } from '../../../core/metadata/state.js';
import type { ReplicationStatus } from '../../status-copies.js';
import type { CliCommand } from '../command.js';
import { withCluster } from '../cluster.js';
import { connectionOptions, readConnection, type ConnectionArguments } from '../connection.js';
import { exitCodesHelp } from '../exit-codes.js';
import { table } from '../table.js';

interface TenantArguments extends ConnectionArguments {
  readonly tenant: string | undefined;
}

interface SetArguments extends TenantArguments {
  readonly level: Policy['level'];
  readonly replicas: number | undefined;
  readonly minInSync: number | undefined;
  readonly onLoss: Policy['onLoss'] | undefined;
}

export function renderReplication(policies: readonly ReplicationStatus[]): string {
  return table(
    [
      { title: 'TENANT' },
      { title: 'LEVEL' },
      { title: 'REPLICAS', right: true },
      { title: 'MIN IN SYNC', right: true },
      { title: 'ON LOSS' },
    ],
    policies.map((p) => [p.tenant ?? '(default)', p.level, String(p.replicas), String(p.minInSync), p.onLoss]),
  );
}

async function show(args: TenantArguments): Promise<void> {
  const { replication } = await withCluster(readConnection(args), (cluster) => cluster.status());
  if (replication === undefined) {
    process.stdout.write('every shard has one copy: not all servers run a version that knows others\n');
    return;
  }
  const chosen = replication.filter((p) => args.tenant === undefined || p.tenant === args.tenant);
  if (chosen.length === 0) throw new FarkvError('ERR_CONFIG', `the cluster has no tenant ${args.tenant ?? ''}`);
  process.stdout.write(renderReplication(chosen));
}

/** What was not said, by level. */
export function policyFrom(args: Pick<SetArguments, 'level' | 'replicas' | 'minInSync' | 'onLoss'>): Policy {
  const { level } = args;
  const replicas = args.replicas ?? (level === 'cache' ? 1 : 2);
  const minInSync = args.minInSync ?? 1;
  for (const [name, value, most] of [
    ['replicas', replicas, COPIES_MAX],
    ['min-in-sync', minInSync, replicas],
  ] as const)
    if (!Number.isInteger(value) || value < 1 || value > most)
      throw new FarkvError('ERR_CONFIG', `--${name}: must be a whole number from 1 to ${most}`);
  if (level === 'cache' && (replicas !== 1 || args.onLoss === 'wait'))
    throw new FarkvError('ERR_CONFIG', 'a cache has one copy, and is served empty when that is lost');
  return { level, replicas, minInSync, onLoss: args.onLoss ?? (level === 'cache' ? 'empty' : 'wait') };
}

async function set(args: SetArguments): Promise<void> {
  const policy = policyFrom(args);
  const { tenant } = args;
  await withCluster(readConnection(args), async (cluster) => {
    await cluster.call('replication-set', { ...policy, ...(tenant === undefined ? {} : { tenant }) });
    const up = (await cluster.status()).members.filter((m) => m.state === 'up' && m.witness !== true).length;
    if (up < policy.replicas)
      process.stderr.write(`there are ${up} servers for ${policy.replicas} copies: farkv status says DEGRADED\n`);
  });
  process.stdout.write(
    policy.level === 'cache'
      ? 'set: each value is kept by one server, and lost with it\n'
      : 'set: copies are made from now on; farkv status shows them\n',
  );
}

const ACTIONS = { show: 'show', set: 'set' } as const;
const tenantOption = {
  type: 'string',
  requiresArg: true,
  describe: 'Of this tenant. Default: the default one',
} as const;

const command: CliCommand<ConnectionArguments> = {
  command: 'replication <action>',
  describe: 'Show or set how many servers keep each value',
  actions: ACTIONS,
  builder: (y) =>
    connectionOptions(y)
      .command({
        command: ACTIONS.show,
        describe: 'Print what is set, for all tenants or one',
        builder: (z: Argv<ConnectionArguments>) =>
          z.option('tenant', { ...tenantOption, describe: 'Of this tenant alone' }) as Argv<TenantArguments>,
        handler: show,
      })
      .command({
        command: ACTIONS.set,
        describe: 'Set it for one tenant',
        builder: (z: Argv<ConnectionArguments>) =>
          z
            .option('tenant', tenantOption)
            .option('level', {
              choices: ['cache', 'replicated'] as const,
              demandOption: true,
              describe: 'cache: a value is lost with its server. replicated: other servers have it',
            })
            .option('replicas', {
              type: 'number',
              requiresArg: true,
              describe: `Copies of each value, the owner's among them: 1 to ${COPIES_MAX}. Default: 2, of a cache 1`,
            })
            .option('min-in-sync', {
              type: 'number',
              requiresArg: true,
              describe: 'Changes are refused while fewer copies are in sync. Default: 1',
            })
            .option('on-loss', {
              choices: ['wait', 'empty'] as const,
              describe: 'When no copy is left: wait for an operator, or serve the shard empty. Default: wait',
            }) as unknown as Argv<SetArguments>,
        handler: set,
      })
      .demandCommand(1, 'Choose an action: show, set')
      .example('$0 replication set --level replicated --replicas 2', 'each value survives one server')
      .example('$0 replication set --level cache --tenant sessions', 'those of one tenant do not')
      .epilogue(exitCodesHelp({ done: 'shown, or set', failed: 'refused' })),
  handler: () => undefined,
};
export default command;
