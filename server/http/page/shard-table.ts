/// <reference lib="dom" />
/**
 * The table of shards. There may be thousands: a row stays until its shard changes, and then what changed of it is
 * written. So text stays selected, and where the reader has scrolled to stays.
 */
import type { ShardView } from '../view.js';
import { byId, bytes, count, element, type Cell } from './elements.js';

interface Row {
  readonly line: HTMLElement;
  readonly cells: readonly HTMLElement[];
  readonly shard: ShardView;
}

const number = (text: string): Cell => ({ text, kind: 'number' });
const TITLES: readonly Cell[] = [
  number('shard'),
  ...['tenant', 'owner', 'state', 'copies', 'trouble'].map((text) => ({ text })),
  ...['lag', 'entries', 'memory'].map(number),
];

/** As `farkv status` has them. */
function copiesText({ copies, inSync, wanted }: ShardView): string {
  const places = copies.map(({ member, lacks }) => (lacks === '' ? member : `${member} (${lacks})`));
  return [`${inSync}/${wanted}`, ...places].join(' ');
}

const cellsOf = (shard: ShardView): Cell[] => [
  number(String(shard.shard)),
  { text: shard.tenant || '-', kind: 'dim' },
  { text: shard.owner || 'none', ...(shard.owner === '' ? { kind: 'bad' } : {}) },
  { text: shard.state, kind: shard.state === 'serving' ? 'good' : shard.state === 'closed' ? 'warn' : 'bad' },
  { text: copiesText(shard), ...(shard.inSync < shard.wanted ? { kind: 'warn' } : {}) },
  { text: shard.trouble, kind: shard.trouble === 'degraded' ? 'warn' : 'bad' },
  number(String(shard.lag)),
  number(count(shard.entries)),
  number(bytes(shard.memoryBytes)),
];

export const isFine = ({ state, trouble }: ShardView): boolean => state === 'serving' && trouble === '';

export class ShardTable {
  readonly #body = document.createElement('tbody');
  readonly #rows = new Map<number, Row>();

  constructor(id: string) {
    const head = document.createElement('thead');
    const titles = document.createElement('tr');
    titles.append(...TITLES.map(({ text, kind }) => element('th', text, kind)));
    head.append(titles);
    byId(id).replaceChildren(head, this.#body);
  }

  /** Every shard; one that has not changed is the same object as before. */
  show(shards: readonly ShardView[]): void {
    let isSorted = this.#rows.size === shards.length;
    for (const shard of shards) {
      const before = this.#rows.get(shard.shard);
      if (before?.shard === shard) continue;
      isSorted &&= before !== undefined && isFine(before.shard) === isFine(shard);
      this.#rows.set(shard.shard, rowOf(shard, before));
    }
    if (this.#rows.size > shards.length) {
      const present = new Set(shards.map(({ shard }) => shard));
      for (const gone of this.#rows.keys()) if (!present.has(gone)) this.#rows.delete(gone);
    }
    // What needs a look comes first.
    const order = (one: ShardView): number => (isFine(one) ? 1 : 0);
    const sorted = (): ShardView[] => [...shards].sort((a, b) => order(a) - order(b) || a.shard - b.shard);
    if (!isSorted) this.#body.replaceChildren(...sorted().map((one) => this.#rows.get(one.shard)?.line ?? ''));
  }
}

function rowOf(shard: ShardView, before: Row | undefined): Row {
  const cells = cellsOf(shard);
  if (before === undefined) {
    const line = document.createElement('tr');
    const made = cells.map(({ text, kind }) => element('td', text, kind));
    line.append(...made);
    return { line, cells: made, shard };
  }
  for (const [i, { text, kind = '' }] of cells.entries()) {
    const cell = before.cells[i];
    if (cell === undefined) continue;
    if (cell.textContent !== text) cell.textContent = text;
    if (cell.className !== kind) cell.className = kind;
  }
  return { ...before, shard };
}
