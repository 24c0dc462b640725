/** `farkv member list|add|remove`: which servers belong to the cluster. */
import type { Argv } from 'yargs';
import type { ClusterStatus, MemberStatus } from '../../status.js';
import type { CliCommand } from '../command.js';
import { withCluster } from '../cluster.js';
import { connectionOptions, readConnection, type ConnectionArguments } from '../connection.js';
import { exitCodesHelp } from '../exit-codes.js';
import { print } from '../output.js';
import { drainLine } from '../../drained-copies.js';
import { errorLines } from '../../move-lines.js';
import { table } from '../table.js';
import { visibleJson } from '../../../core/visible-text.js';

interface IdArguments extends ConnectionArguments {
  readonly id: string;
}
interface AddArguments extends IdArguments {
  readonly address?: readonly string[];
}
interface ListArguments extends ConnectionArguments {
  readonly json: boolean;
}

export function renderMembers(status: ClusterStatus): string {
  const inTheWay = status.members
    .filter((m) => m.draining)
    .flatMap((m) => [...errorLines(status, m.id), ...drainLine(status, m.id)]);
  const members = table(
    [
      { title: 'MEMBER' },
      { title: 'ROLE' },
      { title: 'STATE' },
      { title: 'SHARDS', right: true },
      { title: 'CONTROL' },
    ],
    status.members.map((m) => [
      m.id,
      roleText(m),
      m.draining ? `${m.state}, draining` : m.state,
      String(status.shards.filter((s) => s.owner === m.id).length),
      m.control.join(' ') || '-',
    ]),
  );
  return inTheWay.length === 0 ? members : `${members}\n${inTheWay.join('\n')}\n`;
}

/** With why a server that voted does so no more. */
function roleText({ role, leader, replacedBy }: MemberStatus): string {
  if (leader) return `${role}, leader`;
  return replacedBy === undefined ? role : `${role}, silent: ${replacedBy} votes for it`;
}

async function list(args: ListArguments): Promise<void> {
  const status = await withCluster(readConnection(args), (cluster) => cluster.status());
  print(args.json ? `${visibleJson(status.members, 2)}\n` : renderMembers(status));
}

async function add(args: AddArguments): Promise<void> {
  const { members } = await withCluster(readConnection(args), async (cluster) => {
    await cluster.call('member-add', { id: args.id, control: args.address ?? [] });
    return await cluster.status();
  });
  const join = members.flatMap((m) => m.peer.slice(0, 1)).slice(0, 3);
  print(
    `${args.id} is announced. Start it with: farkv server --id ${args.id} --join ${join.join(',')} --data-dir DIRECTORY, and --join-token-file (farkv join-token create) where the cluster has tokens or certificates\n`,
  );
}

async function remove(args: IdArguments): Promise<void> {
  await withCluster(readConnection(args), (cluster) => cluster.call('member-remove', { id: args.id }));
  print(`${args.id} is removed. A server of this name may join again with an empty data directory and --join\n`);
}

const idOption = (y: Argv<ConnectionArguments>): Argv<IdArguments> =>
  y.positional('id', { type: 'string', demandOption: true, describe: "The server's --id" });

const ACTIONS = { list: 'list', add: 'add <id> [address..]', remove: 'remove <id>' } as const;

const command: CliCommand<ConnectionArguments> = {
  command: 'member <action>',
  describe: 'List, announce and remove servers of a cluster',
  actions: ACTIONS,
  builder: (y) =>
    connectionOptions(y, 'an operator, for list also of a monitor')
      .command({
        command: ACTIONS.list,
        describe: 'Servers, their roles in the metadata group, and how many shards each owns',
        builder: (z: Argv<ConnectionArguments>) =>
          z.option('json', {
            type: 'boolean',
            default: false,
            describe: 'Print a JSON document; its field names are stable',
          }),
        handler: list,
      })
      .command({
        command: ACTIONS.add,
        describe:
          'Announce a server before it joins: its place is reserved and shown. A server may also join unannounced (farkv server --join)',
        builder: (z: Argv<ConnectionArguments>) =>
          idOption(z).positional('address', {
            type: 'string',
            array: true,
            describe: 'Its control addresses, host:port',
          }) as Argv<AddArguments>,
        handler: add,
      })
      .command({
        command: ACTIONS.remove,
        describe: 'Remove a server for good: a drained one without copies, or a dead one that owns no shards',
        builder: idOption,
        handler: remove,
      })
      .demandCommand(1, 'Choose an action: list, add or remove')
      .example('$0 member list', 'servers, and which of them vote')
      .example('$0 member remove s3', 'before s3, which lost its data directory, joins again')
      .epilogue(exitCodesHelp({ done: 'done', failed: 'refused' })),
  handler: () => undefined,
};
export default command;
