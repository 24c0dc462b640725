/** `farkv shard move|rebalance`: which server owns which shard. */
import type { Argv } from 'yargs';
import { FarkvError } from '../../../core/errors.js';
import type { PlannedMove } from '../../../core/metadata/plan.js';
import type { MoveTrouble } from '../../regions/move-troubles.js';
import type { ClusterStatus } from '../../status.js';
import type { CliCommand } from '../command.js';
import { durationOf } from '../client-options.js';
import { withCluster, type ClusterConnection } from '../cluster.js';
import { connectionOptions, readConnection, type ConnectionArguments } from '../connection.js';
import { exitCodesHelp } from '../exit-codes.js';
import { troubleLine } from '../move-lines.js';
import { table } from '../table.js';

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

/** Moves under way at a time: each shard is without an answer for a moment. */
const AT_ONCE = 2;

export const WAIT_OPTION = { type: 'string', requiresArg: true, default: '5m', describe: 'How long to wait until it is done: 30s, 5m' } as const;
export const MOVE_NOTE = 'A shard moves with its values, while clients read and write it: the new owner copies it first. Clients find the new owner by themselves.';

const owns = (shard: number, to: string) => (status: Awaited<ReturnType<ClusterConnection['status']>>): boolean =>
  status.shards.some((s) => s.shard === shard && s.owner === to && s.state === 'serving');

/** It is not on its way there any more, and has not come. */
const calledOff = (shard: number, to: string) => (status: Awaited<ReturnType<ClusterConnection['status']>>): boolean =>
  !status.moves.some((m) => m.shard === shard && m.to === to) && status.shards.some((s) => s.shard === shard && s.owner !== to);

async function moveOne(cluster: ClusterConnection, { shard, to }: Pick<PlannedMove, 'shard' | 'to'>, waitMs: number): Promise<void> {
  await cluster.call('shard-move', { shard, to });
  const troubles = ({ moveTroubles }: ClusterStatus): readonly MoveTrouble[] => (moveTroubles ?? []).filter((one) => one.shard === shard && one.to === to);
  const inTheWay = (status: ClusterStatus): string[] => troubles(status).filter((one) => !one.calledOff).map(troubleLine);
  const status = await cluster.until((now) => owns(shard, to)(now) || calledOff(shard, to)(now), waitMs, `the move of shard ${shard} to ${to}`, inTheWay);
  const owner = status.shards.find((s) => s.shard === shard)?.owner;
  if (owner === to) return;
  // What was in the way may have been asked for before the move was seen to be called off.
  const why = troubles(await cluster.status()).find((one) => one.calledOff);
  throw new FarkvError('ERR_BUSY', `the move of shard ${shard} to ${to} was cancelled: ${owner ?? 'no server'} owns it. ${why === undefined ? `The log of ${to} has the reason` : troubleLine(why)}`);
}

async function move(args: MoveArguments): Promise<void> {
  if (!/^\d{1,4}$/.test(args.shard)) throw new FarkvError('ERR_CONFIG', `"${args.shard}" is not the number of a shard`);
  const shard = Number(args.shard);
  await withCluster(readConnection(args), (cluster) => moveOne(cluster, { shard, to: args.server }, durationOf('wait', args.wait)));
  process.stdout.write(`shard ${shard} is served by ${args.server}\n`);
}

async function rebalance(args: RebalanceArguments): Promise<void> {
  await withCluster(readConnection(args), async (cluster) => {
    const plan = (await cluster.call('shard-plan', {})) as readonly PlannedMove[];
    if (args.json) process.stdout.write(`${JSON.stringify(plan, undefined, 2)}\n`);
    else if (plan.length === 0) process.stdout.write('the shards are balanced: nothing to move\n');
    else process.stdout.write(table([{ title: 'SHARD', right: true }, { title: 'FROM' }, { title: 'TO' }], plan.map((m) => [String(m.shard), m.from, m.to])));
    if (args.dryRun) return;
    const waiting = [...plan];
    const failed: string[] = [];
    const lane = async (): Promise<void> => {
      for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
        await moveOne(cluster, next, durationOf('wait', args.wait)).catch((error: unknown) => {
          // One that is called off says nothing of the others.
          if (!(error instanceof FarkvError && error.code === 'ERR_BUSY')) throw error;
          failed.push(error.message);
        });
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, lane));
    const moved = plan.length - failed.length;
    if (plan.length > 0 && !args.json) process.stdout.write(moved === 1 ? '1 shard moved\n' : `${moved} shards moved\n`);
    if (failed.length > 0) throw new FarkvError('ERR_BUSY', failed.join('; '));
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
        command: ACTIONS.move, describe: 'Give a shard to another server', handler: move,
        builder: (z: Argv<WaitArguments>) =>
          z.positional('shard', { type: 'string', demandOption: true, describe: 'Its number' }).positional('server', { type: 'string', demandOption: true, describe: 'The id of its new owner' }) as Argv<MoveArguments>,
      })
      .command({
        command: ACTIONS.rebalance, describe: 'Spread the shards over the servers by their memory, with as few moves as possible', handler: rebalance,
        builder: (z: Argv<WaitArguments>) =>
          z.option('dry-run', { type: 'boolean', default: false, describe: 'Show the moves only' }).option('json', { type: 'boolean', default: false, describe: 'Print the plan as JSON' }) as unknown as Argv<RebalanceArguments>,
      })
      .demandCommand(1, 'Choose an action: move or rebalance')
      .example('$0 shard rebalance --dry-run', 'show the plan')
      .example('$0 shard move 3 s2', 'give shard 3 to s2')
      .epilogue(`${MOVE_NOTE}\n\n${exitCodesHelp({ done: 'done', failed: 'refused' })}`),
  handler: () => undefined,
};
export default command;
