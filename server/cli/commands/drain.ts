/** `farkv drain SERVER`: takes a server's shards and copies away before it is stopped or removed. */
import { FarkvError } from '../../../core/errors.js';
import type { CliCommand } from '../command.js';
import { durationOf } from '../client-options.js';
import { withCluster } from '../cluster.js';
import { connectionOptions, readConnection, type ConnectionArguments } from '../connection.js';
import { exitCodesHelp } from '../exit-codes.js';
import { print } from '../output.js';
import { copyLines, isDrained, restLines, stayText } from '../../drained-copies.js';
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
    const member = before.members.find((m) => m.id === server);
    if (undo && member?.draining === false) {
      print(`${server} is not being drained: nothing was changed\n`);
      return;
    }
    // Asking again goes on waiting. Of a server that is not there the metadata says so.
    if (member?.draining !== !undo) await cluster.call('drain', { id: server, draining: !undo });
    if (undo) {
      print(`${server} may own shards again: farkv shard rebalance gives it some\n`);
      return;
    }
    const drained = await cluster.until(
      (s) => isDrained(s, server),
      durationOf('wait', args.wait),
      `draining ${server}`,
      (s) => [...errorLines(s, server), ...copyLines(s, server)],
      (s) => [...errorLines(s, server), ...restLines(s, server)],
    );
    const stays = stayText(drained, server);
    // A script that removes the server next is not to go on.
    if (stays !== undefined) throw new FarkvError('ERR_BUSY', stays);
    print(
      `${server} owns no shards, has no copies, and gets none: stop it, or remove it with farkv member remove ${server}\n`,
    );
  });
}

const command: CliCommand<DrainArguments> = {
  command: 'drain <server>',
  describe: "Move a server's shards and copies to the others, and give it no new ones",
  builder: (y) =>
    connectionOptions(y.positional('server', { type: 'string', demandOption: true, describe: "The server's --id" }))
      .option('undo', { type: 'boolean', default: false, describe: 'Let the server own shards again' })
      .option('wait', WAIT_OPTION)
      .example('$0 drain s3 && $0 member remove s3', 'remove s3')
      .example('$0 drain s3 --undo', 'keep s3')
      .epilogue(
        `${MOVE_NOTE} A shard that one server cannot take goes to another, or is retried there with growing pauses. The reasons are printed, and at the end of --wait what is still there; farkv status shows that, too. Copies go when others have taken their place. Where too few servers are left for as many copies as are wanted, they stay: then the server may be stopped and not removed, and the command says what to do.\n\n${exitCodesHelp({ done: 'the server owns no shards and has no copies', failed: 'refused, not done within --wait, or copies stay' })}`,
      ),
  handler,
};
export default command;
