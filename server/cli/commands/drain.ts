/** `farkv drain SERVER`: takes a server's shards away before it is stopped or removed. */
import type { CliCommand } from '../command.js';
import { durationOf } from '../client-options.js';
import { withCluster } from '../cluster.js';
import { connectionOptions, readConnection, type ConnectionArguments } from '../connection.js';
import { exitCodesHelp } from '../exit-codes.js';
import { print } from '../output.js';
import { errorLines } from '../../move-lines.js';
import { MOVE_NOTE, WAIT_OPTION } from './shard.js';

interface DrainArguments extends ConnectionArguments {
  readonly server: string;
  readonly undo: boolean;
  readonly wait: string;
}

async function handler(args: DrainArguments): Promise<void> {
  const { server, undo } = args;
  await withCluster(readConnection(args), async (cluster) => {
    const before = await cluster.status();
    const draining = before.members.some((m) => m.id === server && m.draining);
    // Asking again goes on waiting.
    if (draining === undo) await cluster.call('drain', { id: server, draining: !undo });
    if (undo) {
      print(`${server} may own shards again: farkv shard rebalance gives it some\n`);
      return;
    }
    await cluster.until(
      (s) => s.shards.every((one) => one.owner !== server && one.state === 'serving'),
      durationOf('wait', args.wait),
      `draining ${server}`,
      (s) => errorLines(s, server),
    );
    print(`${server} owns no shards and gets none: stop it, or remove it with farkv member remove ${server}\n`);
  });
}

const command: CliCommand<DrainArguments> = {
  command: 'drain <server>',
  describe: "Move a server's shards to the others, and give it no new ones",
  builder: (y) =>
    connectionOptions(y.positional('server', { type: 'string', demandOption: true, describe: "The server's --id" }))
      .option('undo', { type: 'boolean', default: false, describe: 'Let the server own shards again' })
      .option('wait', WAIT_OPTION)
      .example('$0 drain s3 && $0 member remove s3', 'remove s3')
      .example('$0 drain s3 --undo', 'keep s3')
      .epilogue(
        `${MOVE_NOTE} A shard that one server cannot take goes to another, or is retried there with growing pauses. The reasons are printed.\n\n${exitCodesHelp({ done: 'the server owns no shards', failed: 'refused, or not done within --wait' })}`,
      ),
  handler,
};
export default command;
