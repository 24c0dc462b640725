/// <reference lib="dom" />
/**
 * The cluster as a picture: a box for each server, with its memory, and in it a square for each shard that it has a
 * replica of. What a square means is in its name too, for those who do not see it. A box, and its squares, stay until what
 * they show changes: there may be thousands.
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

/** By server. */
function heldBy(shards: readonly ShardView[]): ReadonlyMap<string, Held[]> {
  const held = new Map<string, Held[]>();
  const add = (id: string, shard: ShardView, as: Square): void => {
    const of = held.get(id);
    if (of === undefined) held.set(id, [{ shard, as }]);
    else of.push({ shard, as });
  };
  for (const shard of shards) {
    if (shard.owner !== '') add(shard.owner, shard, shard.state === 'serving' ? 'primary' : 'closed');
    for (const { member, lacks } of shard.copies)
      if (member !== shard.owner) add(member, shard, lacks === '' ? 'backup' : 'joining');
  }
  return held;
}

const WORDS: Readonly<Record<Square, string>> = {
  primary: 'served here',
  backup: 'a copy in sync',
  joining: 'a copy that is not in sync, away or not made',
  closed: 'owned here and not served',
};

const nameOf = ({ shard, as }: Held): string =>
  `shard ${shard.shard}: ${WORDS[as]}${shard.trouble === '' ? '' : `, ${shard.trouble}`}`;

function square(held: Held): HTMLElement {
  const { shard, as } = held;
  const name = nameOf(held);
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

/** An element and the text that it was made of. */
interface Made {
  readonly from: string;
  readonly element: HTMLElement;
}

/** The same one as before where it would be made of the same. */
const madeOf = (before: Made | undefined, from: string, make: () => HTMLElement): Made =>
  before?.from === from ? before : { from, element: make() };

interface Box {
  readonly box: Made;
  readonly squares: Made;
}

function squaresOf(held: readonly Held[]): HTMLElement {
  const squares = element('ul');
  squares.append(...held.slice(0, SQUARES).map(square));
  if (held.length > SQUARES) squares.append(element('li', `and ${held.length - SQUARES} more`, 'more'));
  return squares;
}

function boxOf(server: ServerView, held: readonly Held[], zone: string, before: Box | undefined): Box {
  const from = [...held.slice(0, SQUARES).map(nameOf), held.length].join();
  const squares = madeOf(before?.squares, from, () => squaresOf(held));
  const served = held.filter(({ as }) => as === 'primary').length;
  const copies = held.filter(({ as }) => as === 'backup').length;
  const isUp = server.state === 'up';
  const words = isUp ? (server.leader ? 'leader' : server.role) : server.state;
  const role = server.witness ? `${words}, witness` : words;
  const { usedBytes, memoryBytes, limitBytes } = server;
  const box = madeOf(
    before?.squares === squares ? before.box : undefined,
    [role, zone, served, copies, usedBytes, memoryBytes, limitBytes].join(),
    () => {
      const made = element('article', '', isUp ? '' : 'gone');
      made.append(
        element('h3', server.id),
        element('span', role, isUp ? 'dim' : 'bad'),
        ...(zone === '' ? [] : [element('span', `zone ${zone}`, 'dim')]),
        element('span', `${served} served, ${copies} ${copies === 1 ? 'copy' : 'copies'}`, 'dim'),
        memoryOf(server),
        squares.element,
      );
      return made;
    },
  );
  return { box, squares };
}

export class Picture {
  /** By server. */
  #boxes: ReadonlyMap<string, Box> = new Map();

  /** Boxes of one zone stand together. */
  show({ servers, shards }: Pick<View, 'servers' | 'shards'>): void {
    const zones = new Map<string, ServerView[]>();
    for (const server of servers) zones.set(server.zone, [...(zones.get(server.zone) ?? []), server]);
    // Each server may be in a zone of its own.
    const alone = zones.size > 1 && zones.size === servers.length;
    const named = zones.size > 1 && zones.size < servers.length;
    const held = heldBy(shards);
    this.#boxes = new Map(
      servers.map((server) => [
        server.id,
        boxOf(server, held.get(server.id) ?? [], alone ? server.zone : '', this.#boxes.get(server.id)),
      ]),
    );
    const shown = [...zones].flatMap(([zone, of]) => [
      ...(named ? [element('h3', `zone ${zone}`, 'zone')] : []),
      ...of.flatMap(({ id }) => this.#boxes.get(id)?.box.element ?? []),
    ]);
    const picture = byId('picture');
    const isSame = shown.length === picture.children.length && shown.every((one, i) => picture.children[i] === one);
    if (!isSame) picture.replaceChildren(...shown);
  }
}
