/// <reference lib="dom" />
/**
 * The cluster as a picture: a box for each server, with its memory, and in it a square for each shard that it has a
 * replica of. What a square means is in its name too, for those who do not see it.
 */
import type { ServerView, ShardView, View } from '../view.js';
import { bytes, byId, element } from './elements.js';

/** Squares of a server; more say how many there are. */
const SQUARES = 256;

type Square = 'primary' | 'backup' | 'joining' | 'closed';

interface Held {
  readonly shard: ShardView;
  readonly as: Square;
}

function heldBy(id: string, shards: readonly ShardView[]): Held[] {
  return shards.flatMap((shard): Held[] => {
    if (shard.owner === id) return [{ shard, as: shard.state === 'serving' ? 'primary' : 'closed' }];
    const replica = shard.copies.find(({ member }) => member === id);
    return replica === undefined ? [] : [{ shard, as: replica.state === 'in-sync' ? 'backup' : 'joining' }];
  });
}

const WORDS: Readonly<Record<Square, string>> = {
  primary: 'served here',
  backup: 'a copy in sync',
  joining: 'a copy that is not in sync',
  closed: 'owned here and not served',
};

function square({ shard, as }: Held): HTMLElement {
  const name = `shard ${shard.shard}: ${WORDS[as]}${shard.trouble === '' ? '' : `, ${shard.trouble}`}`;
  const made = element('li', '', shard.trouble === '' ? as : `${as} trouble`);
  made.title = name;
  made.setAttribute('aria-label', name);
  return made;
}

function memoryOf({ usedBytes, memoryBytes, limitBytes }: ServerView): HTMLElement {
  const made = document.createElement('meter');
  const limit = limitBytes === 0 ? memoryBytes : limitBytes;
  made.max = Math.max(1, limit);
  made.high = 0.9 * made.max;
  made.value = usedBytes;
  made.title = `${bytes(usedBytes)} of ${bytes(limit)} used`;
  made.setAttribute('aria-label', made.title);
  return made;
}

function box(server: ServerView, shards: readonly ShardView[], zone: string): HTMLElement {
  const made = element('article', '', server.state === 'up' ? '' : 'gone');
  const held = heldBy(server.id, shards);
  const counts = (['primary', 'backup'] as const).map((as) => held.filter((one) => one.as === as).length);
  const squares = element('ul');
  squares.append(...held.slice(0, SQUARES).map(square));
  if (held.length > SQUARES) squares.append(element('li', `and ${held.length - SQUARES} more`, 'more'));
  const words = server.state === 'up' ? (server.leader ? 'leader' : server.role) : server.state;
  made.append(
    element('h3', server.id),
    element('span', server.witness ? `${words}, witness` : words, server.state === 'up' ? 'dim' : 'bad'),
    ...(zone === '' ? [] : [element('span', `zone ${zone}`, 'dim')]),
    element('span', `${counts[0] ?? 0} served, ${counts[1] ?? 0} copies`, 'dim'),
    memoryOf(server),
    squares,
  );
  return made;
}

/** Boxes of one zone stand together. */
export function showPicture({ servers, shards }: Pick<View, 'servers' | 'shards'>): void {
  const zones = new Map<string, ServerView[]>();
  for (const server of servers) zones.set(server.zone, [...(zones.get(server.zone) ?? []), server]);
  // Each server may be in a zone of its own.
  const alone = zones.size > 1 && zones.size === servers.length;
  const named = zones.size > 1 && zones.size < servers.length;
  const boxes = [...zones].flatMap(([zone, of]) => [
    ...(named ? [element('h3', `zone ${zone}`, 'zone')] : []),
    ...of.map((server) => box(server, shards, alone ? zone : '')),
  ]);
  byId('picture').replaceChildren(...boxes);
}
