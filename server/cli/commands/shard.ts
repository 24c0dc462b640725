/** `farkv shard move|rebalance`: which server owns which shard. */
import type { Argv } from 'yargs';
import { FarkvError } from '../../../core/errors.js';
import type { CliCommand } from '../command.js';
import { durationOf } from '../client-options.js';
import { withCluster } from '../cluster.js';
import { connectionOptions, readConnection, type ConnectionArguments } from '../connection.js';
import { exitCodesHelp } from '../exit-codes.js';
import { lookAt, moveOne, planText, spread } from '../rebalance.js';

interface WaitArguments extends ConnectionArguments {
  readonly wait: string;
}
interface MoveArguments extends WaitArguments {
  readonly shard: string;
  readonly server: string;
}
interface RebalanceArguments extends WaitArguments {
  readonly dryRun: boolean;
  readonly json: boolean;
}

export const WAIT_OPTION = {
  type: 'string',
  requiresArg: true,
  default: '5m',
  describe: 'How long to wait until it is done: 30s, 5m',
} as const;
export const MOVE_NOTE =
  'A shard moves with its values, while clients read and write it: the new owner copies it first. Clients find the new owner by themselves.';

async function move(args: MoveArguments): Promise<void> {
  if (!/^\d{1,4}$/.test(args.shard)) throw new FarkvError('ERR_CONFIG', `"${args.shard}" is not the number of a shard`);
  const shard = Number(args.shard);
  await withCluster(readConnection(args), (cluster) =>
    moveOne(cluster, { shard, to: args.server }, durationOf('wait', args.wait)),
  );
  process.stdout.write(`shard ${shard} is served by ${args.server}\n`);
}

async function rebalance(args: RebalanceArguments): Promise<void> {
  await withCluster(readConnection(args), async (cluster) => {
    const { plan, status } = await lookAt(cluster);
    if (args.json) process.stdout.write(`${JSON.stringify(plan, undefined, 2)}\n`);
    else process.stdout.write(planText(plan, status));
    if (args.dryRun) return;
    const moved = await spread(cluster, { plan, status }, durationOf('wait', args.wait));
    if (moved > 0 && !args.json)
      process.stdout.write(moved === 1 ? '1 shard was moved\n' : `${moved} shards were moved\n`);
  });
}

const ACTIONS = { move: 'move <shard> <server>', rebalance: 'rebalance' } as const;

const command: CliCommand<ConnectionArguments> = {
  command: 'shard <action>',
  describe: 'Move shards between servers',
  actions: ACTIONS,
  builder: (y) =>
    connectionOptions(y)
      .option('wait', WAIT_OPTION)
      .command({
        command: ACTIONS.move,
        describe: 'Give a shard to another server',
        handler: move,
        builder: (z: Argv<WaitArguments>) =>
          z
            .positional('shard', { type: 'string', demandOption: true, describe: 'Its number' })
            .positional('server', {
              type: 'string',
              demandOption: true,
              describe: 'The id of its new owner',
            }) as Argv<MoveArguments>,
      })
      .command({
        command: ACTIONS.rebalance,
        describe:
          'Spread the shards over the servers by their memory, with as few moves as possible, and wait for moves under way',
        handler: rebalance,
        builder: (z: Argv<WaitArguments>) =>
          z
            .option('dry-run', { type: 'boolean', default: false, describe: 'Show the moves only' })
            .option('json', {
              type: 'boolean',
              default: false,
              describe: 'Print the plan as JSON',
            }) as unknown as Argv<RebalanceArguments>,
      })
      .demandCommand(1, 'What is to be done: move or rebalance?')
      .example('$0 shard rebalance --dry-run', 'what would be moved')
      .example('$0 shard move 3 s2', 's2 is to own shard 3')
      .epilogue(
        `${MOVE_NOTE}\n\n${exitCodesHelp({ done: 'done (rebalance: the shards are spread)', failed: 'refused, or called off' })}`,
      ),
  handler: () => undefined,
};
export default command;
