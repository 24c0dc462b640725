/** `farkv shard move|rebalance|reset`: which server owns which shard, and with what. */
import type { Argv } from 'yargs';
import { FarkvError } from '../../../core/errors.js';
import { visibleJson } from '../../../core/visible-text.js';
import type { ResetDone } from '../../metadata/leader-duties.js';
import type { ClusterStatus } from '../../status.js';
import type { CliCommand } from '../command.js';
import { durationOf } from '../client-options.js';
import { withCluster, type ClusterConnection } from '../cluster.js';
import { connectionOptions, readConnection, type ConnectionArguments } from '../connection.js';
import { exitCodesHelp } from '../exit-codes.js';
import { print } from '../output.js';
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

interface ResetArguments extends WaitArguments {
  readonly shard: string;
  readonly from: string | undefined;
  readonly acceptLoss: boolean;
}

export const WAIT_OPTION = {
  type: 'string',
  requiresArg: true,
  default: '5m',
  describe: 'How long to wait until it is done: 30s, 5m',
} as const;
export const MOVE_NOTE =
  'A shard moves with its values, while clients read and write it: the new owner copies it first. Clients find the new owner by themselves.';

function shardOf({ shard }: { readonly shard: string }): number {
  if (!/^\d{1,4}$/.test(shard)) throw new FarkvError('ERR_CONFIG', `"${shard}" is not the number of a shard`);
  return Number(shard);
}

async function move(args: MoveArguments): Promise<void> {
  const shard = shardOf(args);
  await withCluster(readConnection(args), (cluster) =>
    moveOne(cluster, { shard, to: args.server }, durationOf('wait', args.wait)),
  );
  print(`shard ${shard} is served by ${args.server}\n`);
}

async function rebalance(args: RebalanceArguments): Promise<void> {
  await withCluster(readConnection(args), async (cluster) => {
    const { plan, status } = await lookAt(cluster);
    if (args.json) print(`${visibleJson(plan, 2)}\n`);
    else print(planText(plan, status));
    if (args.dryRun) return;
    const moved = await spread(cluster, { plan, status }, durationOf('wait', args.wait));
    if (moved > 0 && !args.json) print(moved === 1 ? '1 shard was moved\n' : `${moved} shards were moved\n`);
  });
}

/** What is given up with the shard, for the operator who decides. */
export function lossText(shard: number, from: string | undefined, { to, lost }: ResetDone): string {
  const begins =
    from === undefined
      ? `${to} serves shard ${shard} empty: all its values are lost`
      : `${to} serves shard ${shard} with its copy: changes that this copy has not got are lost`;
  const copies = lost.map(
    ({ member, state, silentMs }) => `  copy of ${member}: ${state}, silent for ${Math.round(silentMs / 1000)} s`,
  );
  const gone = '  every server that had a copy in sync has started again since, and came back without it';
  return `${[begins, ...(copies.length === 0 ? [gone] : copies)].join('\n')}\n`;
}

/** The one that was named; or those that wait for an operator and for nobody else. */
async function chosen(cluster: ClusterConnection, args: ResetArguments): Promise<number[]> {
  if (args.shard !== 'all') return [shardOf(args)];
  if (args.from !== undefined) throw new FarkvError('ERR_CONFIG', '--from is of one shard: name it');
  return (await cluster.status()).shards.filter((s) => s.copies?.gone === true).map(({ shard }) => shard);
}

async function reset(args: ResetArguments): Promise<void> {
  const { from, acceptLoss } = args;
  await withCluster(readConnection(args), async (cluster) => {
    const numbers = await chosen(cluster, args);
    for (const shard of numbers) {
      const asked = { shard, acceptLoss, ...(from === undefined ? {} : { from }) };
      const done = (await cluster.call('shard-reset', asked)) as ResetDone;
      print(lossText(shard, from, done));
    }
    if (numbers.length === 0) print('no shard is lost for good: of others name the number\n');
    else if (!acceptLoss)
      throw new FarkvError(
        'ERR_BUSY',
        'nothing was done: a server that is paused or cut off, or whose disk cannot be read, may still have its copy: bring it back, or say --accept-loss',
      );
    const areServed = ({ shards }: ClusterStatus): boolean =>
      numbers.every((shard) => shards[shard]?.state === 'serving');
    const what = `serving shard ${numbers.join(', ')} again`;
    await cluster.until(areServed, durationOf('wait', args.wait), what, () => []);
    for (const shard of numbers) print(`shard ${shard} is served again\n`);
  });
}

const ACTIONS = { move: 'move <shard> <server>', rebalance: 'rebalance', reset: 'reset <shard>' } as const;

const command: CliCommand<ConnectionArguments> = {
  command: 'shard <action>',
  describe: 'Move shards between servers, or give up what is lost of one',
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
        describe: 'Spread the shards, and their copies, over the servers by their memory, and wait for moves under way',
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
      .command({
        command: ACTIONS.reset,
        describe:
          'Serve a shard again whose copies are all lost (status: LOST), empty or with a copy that lacks changes',
        handler: reset,
        builder: (z: Argv<WaitArguments>) =>
          z
            .positional('shard', {
              type: 'string',
              demandOption: true,
              describe: 'Its number, or all: each of which no server can have a copy any more',
            })
            .option('from', {
              type: 'string',
              requiresArg: true,
              describe: 'The server whose copy, which was not in sync, becomes the shard. Default: it is served empty',
            })
            .option('accept-loss', {
              type: 'boolean',
              default: false,
              describe: 'Do it. Without this the command says what would be lost, and ends with 1',
            }) as unknown as Argv<ResetArguments>,
      })
      .demandCommand(1, 'Choose an action: move, rebalance, reset')
      .example('$0 shard rebalance --dry-run', 'what would be moved')
      .example('$0 shard move 3 s2', 's2 is to own shard 3')
      .example('$0 shard reset 3', 'what would be lost')
      .example('$0 shard reset all --accept-loss', 'after a restart of all servers')
      .epilogue(
        `${MOVE_NOTE}\n\n${exitCodesHelp({ done: 'done (rebalance: the shards are spread)', failed: 'refused, called off, or not done within --wait' })}`,
      ),
  handler: () => undefined,
};
export default command;
