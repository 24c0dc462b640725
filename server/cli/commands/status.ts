/** `farkv status`: what a cluster says about itself. */
import type { Argv } from 'yargs';
import { formatSize } from '../../../core/size.js';
import { memoryOf, pageParts, type ClusterStatus, type MemberStatus, type PageParts } from '../../status.js';
import { advice } from '../../advice.js';
import { attention, underWay } from '../../attention.js';
import { whyNotStopped } from '../../safe-to-stop.js';
import { copiesText, levelText } from '../../status-copies.js';
import type { CliCommand } from '../command.js';
import { withCluster } from '../cluster.js';
import { connectionOptions, readConnection, type ConnectionArguments } from '../connection.js';
import { exitCodesHelp } from '../exit-codes.js';
import { diskLines, diskTable } from '../disk-lines.js';
import { print } from '../output.js';
import { moveLines, errorLines, failoverLines } from '../../move-lines.js';
import { table } from '../table.js';
import { visibleJson } from '../../../core/visible-text.js';

interface StatusArguments extends ConnectionArguments {
  readonly json: boolean;
  readonly safeToStop: string | undefined;
}

function builder(y: Argv): Argv<StatusArguments> {
  return connectionOptions(y, 'an operator or a monitor')
    .option('json', {
      type: 'boolean',
      default: false,
      describe: 'Print everything as one JSON document; its field names are stable',
    })
    .option('safe-to-stop', {
      type: 'string',
      requiresArg: true,
      describe:
        'Only whether this server may be stopped: each of its shards has another copy in sync, as many as changes need, and the metadata group goes on',
    })
    .example('$0 status --safe-to-stop s2', 'exit code 0, or one line that says why not')
    .example('$0 status', 'members, leader, shards, regions and memory')
    .example('$0 status --json | jq \'.shards[] | select(.state != "serving")\'', 'shards that do not answer')
    .epilogue(
      exitCodesHelp({
        done: 'every shard is served, there is a leader, and nothing needs a person',
        failed:
          'not so, and the last lines say what it waits for, or what to do; with --safe-to-stop: it may not be stopped',
      }),
    ) as unknown as Argv<StatusArguments>;
}

function healthy(status: ClusterStatus): boolean {
  return status.leader !== undefined && status.shards.length > 0 && status.shards.every((s) => s.state === 'serving');
}

/** How much of the memory is huge pages, and of which kind. */
function hugeText(pages: readonly (PageParts | undefined)[]): string {
  const sum = (kind: 'transparent' | 'reserved'): number => pages.reduce((n, parts) => n + (parts?.[kind] ?? 0), 0);
  const kinds = (['transparent', 'reserved'] as const).filter((kind) => sum(kind) > 0);
  return kinds.map((kind) => `${formatSize(sum(kind))} ${kind}`).join(', ') || '-';
}

function memberState({ state, leader, replacedBy, witness, draining }: MemberStatus): string {
  const about = [state, ...(witness === true ? ['witness'] : []), ...(draining ? ['draining'] : [])];
  if (leader) about.push('leader');
  else if (replacedBy !== undefined) about.push(`${replacedBy} votes for it`);
  return about.join(', ');
}

export function renderStatus(status: ClusterStatus): string {
  const withZones = status.members.some((m) => m.zone !== undefined);
  const members = table(
    [
      { title: 'MEMBER' },
      { title: 'STATE' },
      ...(withZones ? [{ title: 'ZONE' }] : []),
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
      const up = m.node !== undefined && m.witness !== true;
      const owned = status.shards.filter((s) => s.owner === m.id);
      const { usedBytes, memoryBytes } = memoryOf(m.node);
      return [
        m.id,
        memberState(m),
        ...(withZones ? [m.zone ?? '-'] : []),
        m.control.join(' ') || '-',
        [...new Set(m.fabric.map((f) => f.provider))].join(' ') || '-',
        m.witness === true ? '-' : String(owned.length),
        up ? String(owned.reduce((n, { entries = 0 }) => n + entries, 0)) : '-',
        up ? formatSize(usedBytes) : '-',
        up ? formatSize(memoryBytes) : '-',
        up ? hugeText((m.node.dataPlane?.shards ?? []).map(pageParts)) : '-',
        m.memoryBytes === 0 ? '-' : formatSize(m.memoryBytes),
        m.node === undefined ? '-' : String(m.node.clients),
      ];
    }),
  );
  const withCopies = status.shards.some((s) => s.copies !== undefined);
  const shards = table(
    [
      { title: 'SHARD', right: true },
      { title: 'OWNER' },
      { title: 'STATE' },
      ...(withCopies ? [{ title: 'COPIES' }] : []),
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
        ...(withCopies ? [copiesText(s.copies)] : []),
        String(s.epoch),
        String(s.layoutEpoch),
        String(s.buckets),
        regions || '-',
        s.entries === undefined ? '-' : String(s.entries),
        s.usedBytes === undefined ? '-' : formatSize(s.usedBytes),
        s.memoryBytes === undefined ? '-' : formatSize(s.memoryBytes),
        hugeText([s.pages]),
      ];
    }),
  );
  const head = `cluster ${status.clusterId || '(not made yet)'}, map epoch ${status.mapEpoch}, leader ${status.leader ?? 'none'} in term ${status.term} (asked ${status.answeredBy})`;
  const tenants = (status.tenants ?? []).map((d) => `${d.name} ${d.firstShard} to ${d.firstShard + d.shards - 1}`);
  const tenantLine =
    tenants.length === 0
      ? ''
      : `\ntenants and their shards: ${tenants.join(', ')}; the others belong to the default tenant`;
  const needed = attention(status).map((line) => `needs attention: ${line}`);
  const lines = [
    ...diskLines(status),
    ...moveLines(status),
    ...errorLines(status),
    ...failoverLines(status),
    ...underWay(status),
    ...advice(status).map((line) => `advice: ${line}`),
    ...needed,
  ];
  const disks = diskTable(status);
  const early = status.members.some(({ node }) => node?.values?.syncMs !== undefined);
  const levels = status.replication.map((one) => `\n${levelText(one, early)}`).join('');
  return `${head}${tenantLine}${levels}\n\n${members}\n${disks === '' ? '' : `${disks}\n`}${shards}${lines.length === 0 ? '' : `\n${lines.join('\n')}\n`}`;
}

/** With --json: why the exit code is 1 is in `underWay` or in `attention`. */
export function statusDocument(
  status: ClusterStatus,
): ClusterStatus & Readonly<Record<'underWay' | 'attention' | 'advice', string[]>> {
  return { ...status, underWay: underWay(status), attention: attention(status), advice: advice(status) };
}

function saySafe(status: ClusterStatus, id: string, json: boolean): void {
  const why = whyNotStopped(status, id);
  const text = why === undefined ? `${id} may be stopped` : `${id} may not be stopped: ${why}`;
  print(`${json ? visibleJson({ server: id, safeToStop: why === undefined, why }) : text}\n`);
  if (why !== undefined) process.exitCode = 1;
}

async function handler(args: StatusArguments): Promise<void> {
  const status = await withCluster(readConnection(args), (cluster) => cluster.status());
  if (args.safeToStop !== undefined) {
    saySafe(status, args.safeToStop, args.json);
    return;
  }
  print(args.json ? `${visibleJson(statusDocument(status), 2)}\n` : renderStatus(status));
  if (!healthy(status) || attention(status).length > 0) process.exitCode = 1;
}

const command: CliCommand<StatusArguments> = {
  command: 'status',
  describe: 'Show members, leader, shards, regions and memory',
  builder,
  handler,
};
export default command;
