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
import { print, printError } from '../output.js';
import { table } from '../table.js';

interface TenantArguments extends ConnectionArguments {
  readonly tenant: string | undefined;
}

interface SetArguments extends TenantArguments {
  readonly level: Policy['level'] | undefined;
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
  print(renderReplication(args.tenant === undefined ? replication : [policyIn(replication, args.tenant)]));
}

/** Throws ERR_CONFIG when there is no such tenant. */
function policyIn(policies: readonly ReplicationStatus[], tenant: string | undefined): ReplicationStatus {
  const policy = policies.find((p) => p.tenant === tenant);
  if (policy === undefined) throw new FarkvError('ERR_CONFIG', `the cluster has no tenant ${tenant ?? ''}`);
  return policy;
}

type Asked = Pick<SetArguments, 'level' | 'replicas' | 'minInSync' | 'onLoss'>;

/**
 * What was not said stays as it is set; with another level it is that level's default. `known`: undefined before all
 * servers have come.
 */
export function policyFrom(asked: Asked, known: Policy | undefined): Policy {
  const level = asked.level ?? known?.level;
  if (level === undefined)
    throw new FarkvError('ERR_CONFIG', '--level: say it too; what is set is shown only once all servers have come');
  const before = level === known?.level ? known : undefined;
  const replicas = asked.replicas ?? before?.replicas ?? (level === 'cache' ? 1 : 2);
  const minInSync = asked.minInSync ?? before?.minInSync ?? 1;
  for (const [name, value, most] of [
    ['replicas', replicas, COPIES_MAX],
    ['min-in-sync', minInSync, replicas],
  ] as const)
    if (!Number.isInteger(value) || value < 1 || value > most)
      throw new FarkvError('ERR_CONFIG', `--${name}: must be a whole number from 1 to ${most}, and would be ${value}`);
  if (level === 'cache' && (replicas !== 1 || asked.onLoss === 'wait'))
    throw new FarkvError(
      'ERR_CONFIG',
      `a cache has one copy, and is served empty when that is lost; for more say it all: --level replicated --replicas ${Math.max(2, replicas)}${asked.onLoss === undefined ? '' : ` --on-loss ${asked.onLoss}`}`,
    );
  if (level === 'durable' && asked.onLoss === 'empty')
    throw new FarkvError(
      'ERR_CONFIG',
      '--on-loss empty is not for durable values: servers that are silent come back with them on their disks. farkv shard reset gives up what is lost for good',
    );
  return {
    level,
    replicas,
    minInSync,
    onLoss: asked.onLoss ?? before?.onLoss ?? (level === 'cache' ? 'empty' : 'wait'),
  };
}

/** What becomes of a policy while so few servers keep values; undefined: they are enough. */
export function lackText({ replicas, minInSync }: Policy, up: number): string | undefined {
  if (up >= replicas) return undefined;
  const lack = `${up === 1 ? 'one server keeps' : `${up} servers keep`} values now, and each value is to have ${replicas} copies`;
  return up < minInSync
    ? `${lack}: farkv status says TOO FEW, and changes are refused until ${minInSync} are in sync. Add servers (farkv server --join), or farkv replication set --min-in-sync ${up}`
    : `${lack}: farkv status says DEGRADED until servers have been added (farkv server --join)`;
}

async function set(args: SetArguments): Promise<void> {
  const { tenant } = args;
  await withCluster(readConnection(args), async (cluster) => {
    const { replication } = await cluster.status();
    const policy = policyFrom(args, policyIn(replication, tenant));
    await cluster.call('replication-set', { ...policy, ...(tenant === undefined ? {} : { tenant }) });
    print(
      policy.level === 'cache'
        ? 'set: each value is kept by one server, and lost with it\n'
        : 'set: copies are made from now on; farkv status shows them\n',
    );
    print(renderReplication([{ ...(tenant === undefined ? {} : { tenant }), ...policy }]));
    const up = (await cluster.status()).members.filter((m) => m.state === 'up' && m.witness !== true).length;
    const lack = lackText(policy, up);
    if (lack !== undefined) printError(`${lack}\n`);
  });
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
    connectionOptions(y, 'an operator, for show also of a monitor')
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
              choices: ['cache', 'replicated', 'durable'] as const,
              describe:
                'cache: a value is lost with its server. replicated: other servers have it. durable: their disks, too; what is durable stays so, and what is not does not become it. Default: as it is set',
            })
            .option('replicas', {
              type: 'number',
              requiresArg: true,
              describe: `Copies of each value, the owner's among them: 1 to ${COPIES_MAX}. Default: as it is set; with another level 2, of a cache 1`,
            })
            .option('min-in-sync', {
              type: 'number',
              requiresArg: true,
              describe:
                'Changes are refused while fewer copies are in sync. Default: as it is set; with another level 1',
            })
            .option('on-loss', {
              choices: ['wait', 'empty'] as const,
              describe:
                'When no copy is left: wait for an operator, or serve the shard empty; durable values always wait. Default: as it is set; with another level wait',
            }) as unknown as Argv<SetArguments>,
        handler: set,
      })
      .demandCommand(1, 'Choose an action: show, set')
      .example('$0 replication set --level replicated --replicas 2', 'each value survives one server')
      .example('$0 replication set --min-in-sync 2', 'changes need two copies; the rest stays as it is set')
      .example('$0 replication set --level cache --tenant sessions', 'those of one tenant do not survive')
      .epilogue(exitCodesHelp({ done: 'shown, or set', failed: 'refused' })),
  handler: () => undefined,
};
export default command;
