/// <reference lib="dom" />
/**
 * The page of a cluster: what the server sends (events.ts), shown. It asks for nothing else, and changes nothing.
 */
import type { Happening } from '../happenings.js';
import type { ServerView, ShardView, View } from '../view.js';
import { Chart } from './charts.js';
import {
  byId,
  bytes,
  clock,
  count,
  element,
  fillList,
  fillTable,
  micros,
  span,
  zoneAt,
  type Cell,
} from './elements.js';
import { changes, CHARTS, sampleOf, type Sample } from './figures.js';
import { lostText } from './connection.js';
import { follow, type Refusal } from './follow.js';
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
  showLines('under-way', view.underWay);
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
    chart.add(samples.map(([atMs, ...figures]) => [atMs, ...figures.slice(from - 1, to - 1)] as const));
    from = to;
  }
  drawnMs = samples.at(-1)?.[0] ?? drawnMs;
}

function listed(atMs: number, text: string, kind = ''): void {
  const item = element('li', '', kind);
  const time = element('time', clock(atMs));
  time.setAttribute('datetime', new Date(atMs).toISOString());
  item.append(time, text);
  byId('happened').prepend(item);
  byId('zone').textContent = `times in ${zoneAt(atMs)}`;
}

let newest = 0;
function tell(news: readonly Happening[]): void {
  for (const { number: n, atMs, text } of news) {
    if (n <= newest) continue;
    newest = n;
    listed(atMs, text);
  }
  const list = byId('happened');
  while (list.children.length > HAPPENED) list.lastElementChild?.remove();
}

/** What the last start of the server has told stays: it may be why there is another one, which counts from 1. */
let startedMs: number | undefined;
function begin(atMs: number): void {
  if (startedMs !== undefined && startedMs !== atMs) {
    listed(
      atMs,
      'the server that answers here has started again, or is another one; what is below was noted before',
      'dim',
    );
    newest = 0;
  }
  startedMs = atMs;
}

/** By number: a look has those that changed since the one before. */
const shards = new Map<number, ShardView>();
let heardMs = performance.now();
/** The last look. */
let seen: Pick<View, 'atMs' | 'answeredBy'> | undefined;
let isLost = false;

function look(view: View): void {
  heardMs = performance.now();
  isLost = false;
  seen = view;
  byId('connection').hidden = true;
  for (const shard of view.shards) shards.set(shard.shard, shard);
  show({ ...view, shards: [...shards.values()] });
}

function lose(refusal: Refusal | undefined): void {
  isLost = true;
  showHealth(refusal === undefined ? 'not connected' : 'refused', 'bad');
  const text = lostText(
    seen?.answeredBy ?? location.host,
    refusal,
    seen === undefined ? undefined : `${clock(seen.atMs)} ${zoneAt(seen.atMs)}`,
  );
  const box = byId('connection');
  box.hidden = false;
  // A screen reader says it once.
  if (box.textContent !== text) box.textContent = text;
}

function heard(event: string, data: string): void {
  if (event === 'view') look(JSON.parse(data) as View);
  else if (event === 'happened') tell(JSON.parse(data) as Happening[]);
  else if (event === 'start') {
    begin((JSON.parse(data) as Pick<Happening, 'atMs'>).atMs);
    // It is connected; what it looks at may not answer yet.
    isLost = false;
    heardMs = performance.now();
    byId('connection').hidden = true;
    // The first look of a stream has all shards.
    shards.clear();
  }
  // A stream that was open before has drawn what it was sent, more finely.
  else if (event === 'history') draw((JSON.parse(data) as Sample[]).filter(([atMs]) => atMs > drawnMs));
}

// The address of the page may have a user and a token in it, with which nothing can be fetched; the browser has them.
void follow(`${location.origin}/events`, { heard, ended: lose });
setInterval(() => {
  const silentMs = performance.now() - heardMs;
  if (!isLost && silentMs > SILENT_MS) showHealth(`no answer for ${span(silentMs)}`, 'bad');
}, 1000);
