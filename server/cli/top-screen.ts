/** One frame of `farkv top`, as text. */
import { visible } from '../../core/visible-text.js';
import { formatDuration, formatSize } from '../config/units.js';
import type { ServerView, ShardView, View } from '../http/view.js';
import { table } from './table.js';

export interface Screen {
  readonly columns: number;
  readonly rows: number;
}

const count = (n: number): string => Math.round(n).toLocaleString('en');
const micros = (us: number): string => (us === 0 ? '-' : formatDuration(us * 1000));

function serverCells(s: ServerView): string[] {
  const isUp = s.state === 'up';
  const known = (text: string): string => (isUp ? text : '-');
  const { rates } = s;
  return [
    s.id,
    [s.state, ...(s.leader ? ['leader'] : []), ...(s.draining ? ['draining'] : [])].join(', '),
    known(s.leaseHeld ? 'held' : 'none'),
    String(s.shards),
    String(s.copies),
    known(count(s.entries)),
    known(formatSize(s.memoryBytes)),
    known(count(rates.get + rates.read)),
    known(count(rates.put)),
    known(count(rates.delete + rates.cas)),
    known(micros(s.putUsP50)),
    known(micros(s.putUsP99)),
    known(String(s.clients)),
  ];
}

const isFine = ({ state, trouble }: ShardView): boolean => state === 'serving' && trouble === '';

/** At most as many lines as the screen has; what needs a person comes first, shards last. */
export function topScreen(view: View, screen: Screen): string {
  const served = view.shards.filter(({ state }) => state === 'serving').length;
  const lag = Math.max(0, ...view.shards.map((shard) => shard.lag));
  const wrong = view.shards.filter((shard) => !isFine(shard));
  const servers = table(
    [
      { title: 'SERVER' },
      { title: 'STATE' },
      { title: 'LEASE' },
      ...['SHARDS', 'COPIES', 'ENTRIES', 'MEMORY', 'READS/S', 'PUTS/S', 'OTHER/S', 'PUT P50', 'PUT P99', 'CLIENTS'].map(
        (title) => ({ title, right: true }),
      ),
    ],
    view.servers.map(serverCells),
  );
  const lines = [
    `farkv ${visible(view.clusterId).slice(0, 8)}  ${new Date(view.atMs).toISOString().slice(11, 19)}  leader ${visible(view.leader || 'none')}, term ${view.term}  ${served} of ${view.shards.length} shards served  lag ${lag}`,
    ...view.attention.map((line) => `needs attention: ${visible(line)}`),
    '',
    ...servers.trimEnd().split('\n'),
    '',
    ...view.moves.map(visible),
    ...wrong.map(
      ({ shard, owner, state, inSync, wanted, trouble }) =>
        `shard ${shard}: ${state} at ${visible(owner || 'nobody')}, copies ${inSync}/${wanted} ${visible(trouble)}`,
    ),
    ...(wrong.length === 0 ? ['every shard is as it should be'] : []),
  ];
  return lines
    .slice(0, screen.rows)
    .map((line) => line.slice(0, screen.columns).trimEnd())
    .join('\n');
}
