/** `farkv status`: what a cluster says about itself. */
import type { Argv } from 'yargs';
import { formatSize } from '../../config/units.js';
import type { ClusterStatus, ShardStatus } from '../../status.js';
import type { CliCommand } from '../command.js';
import { withCluster } from '../cluster.js';
import { connectionOptions, readConnection, type ConnectionArguments } from '../connection.js';
import { exitCodesHelp } from '../exit-codes.js';
import { moveLines, errorLines } from '../move-lines.js';
import { table } from '../table.js';

interface StatusArguments extends ConnectionArguments {
  readonly json: boolean;
}

function builder(y: Argv): Argv<StatusArguments> {
  return connectionOptions(y)
    .option('json', {
      type: 'boolean',
      default: false,
      describe: 'Print everything as one JSON document; its field names are stable',
    })
    .example('$0 status', 'members, leader, shards, regions and memory')
    .example('$0 status --json | jq \'.shards[] | select(.state != "serving")\'', 'shards that do not answer')
    .epilogue(exitCodesHelp({ done: 'every shard is served and there is a leader', failed: 'not so' }));
}

function healthy(status: ClusterStatus): boolean {
  return status.leader !== undefined && status.shards.length > 0 && status.shards.every((s) => s.state === 'serving');
}

/** How much of the memory is huge pages, and of which kind. */
function hugeText(shards: readonly ShardStatus[]): string {
  const sum = (kind: 'transparent' | 'reserved'): number => shards.reduce((n, s) => n + (s.pages?.[kind] ?? 0), 0);
  const kinds = (['transparent', 'reserved'] as const).filter((kind) => sum(kind) > 0);
  return kinds.map((kind) => `${formatSize(sum(kind))} ${kind}`).join(', ') || '-';
}

export function renderStatus(status: ClusterStatus): string {
  const sum = (id: string, of: 'memoryBytes' | 'usedBytes' | 'entries'): number =>
    status.shards.filter((s) => s.owner === id).reduce((n, s) => n + (s[of] ?? 0), 0);
  const members = table(
    [
      { title: 'MEMBER' },
      { title: 'STATE' },
      { title: 'CONTROL' },
      { title: 'DATA' },
      { title: 'SHARDS', right: true },
      { title: 'ENTRIES', right: true },
      { title: 'USED', right: true },
      { title: 'MEMORY', right: true },
      { title: 'HUGE PAGES', right: true },
      { title: 'LIMIT', right: true },
      { title: 'CLIENTS', right: true },
    ],
    status.members.map((m) => {
      const up = m.node !== undefined;
      return [
        m.id,
        m.leader ? `${m.state}, leader` : m.state,
        m.control.join(' ') || '-',
        [...new Set(m.fabric.map((f) => f.provider))].join(' ') || '-',
        String(status.shards.filter((s) => s.owner === m.id).length),
        up ? String(sum(m.id, 'entries')) : '-',
        up ? formatSize(sum(m.id, 'usedBytes')) : '-',
        up ? formatSize(sum(m.id, 'memoryBytes')) : '-',
        up ? hugeText(status.shards.filter((s) => s.owner === m.id)) : '-',
        m.memoryBytes === 0 ? '-' : formatSize(m.memoryBytes),
        m.node === undefined ? '-' : String(m.node.clients),
      ];
    }),
  );
  const shards = table(
    [
      { title: 'SHARD', right: true },
      { title: 'OWNER' },
      { title: 'STATE' },
      { title: 'EPOCH', right: true },
      { title: 'LAYOUT', right: true },
      { title: 'BUCKETS', right: true },
      { title: 'REGIONS' },
      { title: 'ENTRIES', right: true },
      { title: 'USED', right: true },
      { title: 'MEMORY', right: true },
      { title: 'HUGE PAGES', right: true },
    ],
    status.shards.map((s) => {
      const providers = [...new Set(s.regions.map((r) => r.provider))];
      const regions = providers
        .map((p) => `${p} ${s.regions.filter((r) => r.provider === p).reduce((n, r) => n + r.count, 0)}`)
        .join(', ');
      return [
        String(s.shard),
        s.owner ?? '-',
        s.state,
        String(s.epoch),
        String(s.layoutEpoch),
        String(s.buckets),
        regions || '-',
        s.entries === undefined ? '-' : String(s.entries),
        s.usedBytes === undefined ? '-' : formatSize(s.usedBytes),
        s.memoryBytes === undefined ? '-' : formatSize(s.memoryBytes),
        hugeText([s]),
      ];
    }),
  );
  const head = `cluster ${status.clusterId || '(not made yet)'}, map epoch ${status.mapEpoch}, leader ${status.leader ?? 'none'} in term ${status.term} (asked ${status.answeredBy})`;
  const tenants = (status.tenants ?? []).map((d) => `${d.name} ${d.firstShard} to ${d.firstShard + d.shards - 1}`);
  const tenantLine =
    tenants.length === 0
      ? ''
      : `\ntenants and their shards: ${tenants.join(', ')}; the others belong to the default tenant`;
  const moves = [...moveLines(status), ...errorLines(status)];
  return `${head}${tenantLine}\n\n${members}\n${shards}${moves.length === 0 ? '' : `\n${moves.join('\n')}\n`}`;
}

async function handler(args: StatusArguments): Promise<void> {
  const status = await withCluster(readConnection(args), (cluster) => cluster.status());
  process.stdout.write(args.json ? `${JSON.stringify(status, undefined, 2)}\n` : renderStatus(status));
  if (!healthy(status)) process.exitCode = 1;
}

const command: CliCommand<StatusArguments> = {
  command: 'status',
  describe: 'Show members, leader, shards, regions and memory',
  builder,
  handler,
};
export default command;
