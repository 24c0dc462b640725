/// <reference lib="dom" />
/**
 * The page of a cluster: what the server sends (events.ts), shown. It asks for nothing else, and changes nothing.
 */
import type { Happening } from '../happenings.js';
import type { ServerView, ShardView, View } from '../view.js';
import { Chart } from './charts.js';
import { byId, bytes, count, element, fillList, fillTable, micros, span, type Cell } from './elements.js';
import { changes, CHARTS, sampleOf, type Sample } from './figures.js';
import { follow } from './follow.js';
import { Picture } from './picture.js';
import { isFine, ShardTable } from './shard-table.js';

const HAPPENED = 100;
const SILENT_MS = 4000;

const charts = Object.entries(CHARTS).map(([id, names]) => new Chart(id, names, id === 'latency'));
const picture = new Picture();
const table = new ShardTable('shards');

const number = (text: string, kind?: Cell['kind']): Cell => ({ text, kind: kind ?? 'number' });
const numbers = (titles: readonly string[]): Cell[] => titles.map((text) => number(text));

function showHealth(text: string, kind: 'good' | 'warn' | 'bad'): void {
  const badge = byId('health');
  badge.textContent = text;
  badge.className = `badge ${kind}`;
}

function showFacts(view: View): void {
  const served = view.shards.filter(({ state }) => state === 'serving').length;
  const facts = {
    leader: view.leader === '' ? 'none' : `${view.leader}, term ${view.term}`,
    servers: `${view.servers.filter(({ state }) => state === 'up').length} of ${view.servers.length} answer`,
    shards: `${served} of ${view.shards.length} served`,
    entries: count(view.servers.reduce((n, { entries }) => n + entries, 0)),
    ...(view.gets.perSecond === 0
      ? {}
      : { GETs: `${count(view.gets.perSecond)}/s, ${Math.round(view.gets.hitRatio * 100)} % hits` }),
    cluster: view.clusterId.slice(0, 8),
    asked: view.answeredBy,
  };
  byId('facts').replaceChildren(
    ...Object.entries(facts).map(([name, text]) => {
      const pair = document.createElement('div');
      pair.append(element('dt', name), element('dd', text));
      return pair;
    }),
  );
  if (view.attention.length > 0) showHealth('needs attention', 'bad');
  else if (view.leader === '' || served < view.shards.length) showHealth('not all shards are served', 'warn');
  else showHealth('all shards are served', 'good');
  showLines('attention', view.attention);
  showLines('advice', view.advice);
}

/** In a section that is there only while there are any. */
function showLines(id: string, lines: readonly string[]): void {
  const box = byId(id);
  box.hidden = lines.length === 0;
  const list = box.querySelector('ul');
  if (list !== null) fillList(list, lines);
}

const roleText = ({ leader, role, witness, draining }: ServerView): string =>
  [leader ? 'leader' : role, ...(witness ? ['witness'] : []), ...(draining ? ['draining'] : [])].join(', ');

function serverRow(server: ServerView): Cell[] {
  const isUp = server.state === 'up';
  const known = (text: string): Cell => (isUp ? number(text) : { text: '-', kind: 'number' });
  return [
    { text: server.id },
    { text: server.state, kind: isUp ? 'good' : 'bad' },
    { text: roleText(server), kind: 'dim' },
    { text: server.zone, kind: 'dim' },
    isUp ? { text: server.leaseHeld ? 'held' : 'none', kind: server.leaseHeld ? 'dim' : 'bad' } : { text: '-' },
    number(String(server.shards)),
    number(String(server.copies)),
    known(count(server.entries)),
    known(bytes(server.memoryBytes)),
    { text: server.limitBytes === 0 ? '-' : bytes(server.limitBytes), kind: 'number' },
    known(count(server.rates.get + server.rates.read)),
    known(count(changes(server.rates))),
    known(micros(server.putUsP99)),
    known(String(server.clients)),
    { text: isUp ? span(server.uptimeMs) : '-', kind: 'number' },
  ];
}

function showServers(servers: readonly ServerView[]): void {
  const titles = [
    ...['server', 'state', 'role', 'zone', 'lease'].map((text) => ({ text })),
    ...numbers(['shards', 'copies', 'entries', 'memory', 'limit', 'reads/s', 'changes/s', 'put p99', 'clients', 'up']),
  ];
  fillTable('servers', titles, servers.map(serverRow));
}

function show(view: View): void {
  showFacts(view);
  picture.show(view);
  showServers(view.servers);
  table.show(view.shards);
  byId('legend').textContent = `${view.shards.filter(isFine).length} of ${view.shards.length} as they should be`;
  const uses = Object.entries(view.memory).filter(([, n]) => n > 0);
  const pages = Object.entries(view.pages).filter(([, n]) => n > 0);
  fillTable(
    'use',
    [],
    [
      ...uses.map(([use, n]) => [{ text: use }, number(bytes(n))]),
      ...pages.map(([page, n]) => [{ text: `${page} pages`, kind: 'dim' as const }, number(bytes(n))]),
    ],
  );
  fillList(byId('moves'), view.moves, 'none');
  draw([sampleOf(view)]);
}

/** When what the charts show was, milliseconds since 1970. */
let drawnMs = 0;
function draw(samples: readonly Sample[]): void {
  let from = 1;
  for (const chart of charts) {
    const to = from + chart.lines;
    chart.add(samples.map(([atMs, ...figures]) => [atMs, ...figures.slice(from - 1, to - 1)]));
    from = to;
  }
  drawnMs = samples.at(-1)?.[0] ?? drawnMs;
}

let newest = 0;
function tell(news: readonly Happening[]): void {
  const list = byId('happened');
  for (const { number: n, atMs, text } of news) {
    if (n <= newest) continue;
    newest = n;
    const item = element('li');
    item.append(element('time', new Date(atMs).toLocaleTimeString('en-GB')), text);
    list.prepend(item);
  }
  while (list.children.length > HAPPENED) list.lastElementChild?.remove();
}

/** By number: a look has those that changed since the one before. */
const shards = new Map<number, ShardView>();
let heardMs = performance.now();
follow(() => {
  const events = new EventSource('/events');
  events.addEventListener('view', ({ data }: MessageEvent<string>) => {
    heardMs = performance.now();
    const view = JSON.parse(data) as View;
    for (const shard of view.shards) shards.set(shard.shard, shard);
    show({ ...view, shards: [...shards.values()] });
  });
  // A stream that was open before has drawn what it was sent, more finely.
  events.addEventListener('history', ({ data }: MessageEvent<string>) =>
    draw((JSON.parse(data) as Sample[]).filter(([atMs]) => atMs > drawnMs)),
  );
  events.addEventListener('happened', ({ data }: MessageEvent<string>) => tell(JSON.parse(data) as Happening[]));
  // A server that has started again counts from 1; and a stream begins with all shards.
  events.addEventListener('error', () => {
    newest = 0;
    shards.clear();
    byId('happened').replaceChildren();
  });
  return events;
});
setInterval(() => {
  const silentMs = performance.now() - heardMs;
  if (silentMs > SILENT_MS) showHealth(`no answer for ${span(silentMs)}`, 'bad');
}, 1000);
