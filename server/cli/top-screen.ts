/** One frame of `farkv top`, as text. */
import { visible } from '../../core/visible-text.js';
import { formatSize } from '../../core/size.js';
import { formatDuration } from '../config/units.js';
import { otherChanges, type ServerView, type ShardView, type View } from '../http/view.js';
import { table, type Column } from './table.js';

export interface Screen {
  readonly columns: number;
  readonly rows: number;
}

const count = (n: number): string => Math.round(n).toLocaleString('en');
const micros = (us: number): string => (us === 0 ? '-' : formatDuration(us * 1000));

interface ServerColumn extends Column {
  /** A server that is not up has none of these. */
  readonly ofLiving?: boolean;
  /** Nor has a witness. */
  readonly ofKeepers?: boolean;
  /** On a screen that is too narrow the highest numbers are left out first. */
  readonly leftOut: number;
  readonly cell: (server: ServerView) => string;
}

const right = (title: string, leftOut: number, cell: ServerColumn['cell'], ofLiving = true): ServerColumn => ({
  title,
  leftOut,
  cell,
  ofLiving,
  ofKeepers: title !== 'CLIENTS',
  right: true,
});
/** Also as a part of --memory, at which changes fail. */
const usedText = ({ usedBytes, limitBytes }: ServerView): string =>
  limitBytes === 0
    ? formatSize(usedBytes)
    : `${formatSize(usedBytes)}, ${Math.floor((100 * usedBytes) / limitBytes)} %`;
const COLUMNS: readonly ServerColumn[] = [
  { title: 'SERVER', leftOut: 0, cell: ({ id }) => id },
  {
    title: 'STATE',
    leftOut: 0,
    cell: (s) =>
      [
        s.state,
        ...(s.witness ? ['witness'] : []),
        ...(s.leader ? ['leader'] : []),
        ...(s.draining ? ['draining'] : []),
      ].join(', '),
  },
  { title: 'LEASE', leftOut: 1, ofLiving: true, cell: ({ leaseHeld }) => (leaseHeld ? 'held' : 'none') },
  right('SHARDS', 2, ({ shards }) => String(shards), false),
  right('COPIES', 8, ({ copies }) => String(copies), false),
  right('ENTRIES', 9, ({ entries }) => count(entries)),
  right('USED', 0, usedText),
  right('MEMORY', 5, ({ memoryBytes }) => formatSize(memoryBytes)),
  right('LIMIT', 4, ({ limitBytes }) => (limitBytes === 0 ? '-' : formatSize(limitBytes)), false),
  right('READS/S', 0, ({ rates }) => count(rates.get + rates.read)),
  right('PUTS/S', 0, ({ rates }) => count(rates.put)),
  right('OTHER/S', 11, ({ rates }) => count(otherChanges(rates))),
  right('PUT P50', 10, ({ putUsP50 }) => micros(putUsP50)),
  right('PUT P99', 0, ({ putUsP99 }) => micros(putUsP99)),
  right('CLIENTS', 3, ({ clients }) => String(clients)),
];

/** As many columns as there is room for. */
function serverTable(servers: readonly ServerView[], width: number): string[] {
  for (let most = Math.max(...COLUMNS.map(({ leftOut }) => leftOut)); ; most--) {
    const columns = COLUMNS.filter(({ leftOut }) => leftOut <= most);
    const rows = servers.map((server) =>
      columns.map(({ cell, ofLiving, ofKeepers }) =>
        (ofLiving === true && server.state !== 'up') || (ofKeepers === true && server.witness) ? '-' : cell(server),
      ),
    );
    const lines = table(columns, rows).trimEnd().split('\n');
    if (most === 0 || lines.every((line) => line.length <= width)) return lines;
  }
}

/** As many lines as the parts need, each part whole; those after the first begin with `indent`. */
function wrapped(parts: readonly string[], width: number, between = '  ', indent = ''): string[] {
  const lines: string[] = [];
  for (const part of parts) {
    const longer = lines.length === 0 ? part : `${lines.at(-1) ?? ''}${between}${part}`;
    if (lines.length === 0 || longer.length <= width) lines.splice(-1, 1, longer);
    else lines.push(`${indent}${part}`);
  }
  return lines;
}

const INDENT = '  ';
/** A word; or `farkv` and what follows up to the end of the clause, which may have to be copied. */
const PIECE = /\(?\bfarkv (?:[^;,:)]|[;,:)](?=\S))*[;,:)]*|\S+/g;

/** A sentence in as many lines as it needs: a command stays on one line where the screen is wide enough for it. */
function sentence(text: string, width: number): string[] {
  const pieces = (visible(text).match(PIECE) ?? []).flatMap((piece) =>
    piece.length + INDENT.length > width ? piece.split(' ') : [piece],
  );
  return wrapped(pieces, width, ' ', INDENT);
}

const timeText = (ms: number): string => `${new Date(ms).toISOString().slice(11, 19)} UTC`;

function headline(view: View): string[] {
  const { shards, clusterId, leader, term, atMs } = view;
  const served = shards.filter(({ state }) => state === 'serving').length;
  // More than are wanted at one shard make up for none at another.
  const inSync = shards.reduce((n, shard) => n + Math.min(shard.inSync, shard.wanted), 0);
  const wanted = shards.reduce((n, shard) => n + shard.wanted, 0);
  return [
    `farkv ${visible(clusterId).slice(0, 8)}`,
    timeText(atMs),
    `leader ${visible(leader || 'none')}, term ${term}`,
    `${served} of ${shards.length} shards served`,
    `copies ${inSync}/${wanted} in sync`,
    `lag ${shards.reduce((most, { lag }) => Math.max(most, lag), 0)}`,
  ];
}

const isFine = ({ state, trouble }: ShardView): boolean => state === 'serving' && trouble === '';

const silence = ({ answeredBy, atMs }: View): string =>
  `${answeredBy} does not answer: this is of ${timeText(atMs)}, and each known server is asked`;

/**
 * At most as many lines as the screen has; what needs a person comes first, shards last. `isSilent`: the server that
 * was asked does not answer any more.
 */
export function topScreen(view: View, screen: Screen, isSilent = false): string {
  const wrong = view.shards.filter((shard) => !isFine(shard));
  const isCalm = view.attention.length === 0 && view.underWay.length === 0;
  const lines = [
    ...(isSilent ? sentence(silence(view), screen.columns) : []),
    ...wrapped(headline(view), screen.columns),
    ...(view.gets.perSecond === 0
      ? []
      : [
          `GETs of clients ${count(view.gets.perSecond)}/s, ${Math.round(view.gets.hitRatio * 100)} % hits, ${view.gets.readsPerGet.toFixed(2)} READs each`,
        ]),
    ...view.attention.flatMap((line) => sentence(`needs attention: ${line}`, screen.columns)),
    '',
    ...serverTable(view.servers, screen.columns),
    '',
    ...view.moves.flatMap((line) => sentence(line, screen.columns)),
    ...view.underWay.flatMap((line) => sentence(line, screen.columns)),
    ...view.advice.flatMap((line) => sentence(`advice: ${line}`, screen.columns)),
    ...wrong.map(
      ({ shard, owner, state, inSync, wanted, trouble }) =>
        `shard ${shard}: ${state} at ${visible(owner || 'nobody')}, copies ${inSync}/${wanted} ${visible(trouble)}`,
    ),
    ...(wrong.length > 0 ? [] : [isCalm ? 'every shard is as it should be' : 'every shard is served']),
  ];
  return lines
    .slice(0, screen.rows)
    .map((line) => line.slice(0, screen.columns).trimEnd())
    .join('\n');
}
