/** The keys of a Redis database that were not imported: how many for each reason, and some of their names. */
import { printable } from '../key-text.js';

export const NAMES_MAX = 10;
/** Reasons come from the server: types that it has made up. */
const REASONS_MAX = 32;
const OTHERS = 'other reasons';

export interface Reason {
  count: number;
  readonly names: Buffer[];
}

export type LeftOut = ReadonlyMap<string, Reason>;

export class LeftOutKeys {
  readonly reasons = new Map<string, Reason>();

  add(reason: string, key: Buffer): void {
    const name = this.reasons.has(reason) || this.reasons.size < REASONS_MAX ? reason : OTHERS;
    let one = this.reasons.get(name);
    if (one === undefined) this.reasons.set(name, (one = { count: 0, names: [] }));
    one.count++;
    if (one.names.length < NAMES_MAX) one.names.push(key);
  }
}

export function leftOutLines(leftOut: LeftOut): string[] {
  return [...leftOut].map(([reason, { count, names }]) => {
    const more = count > names.length ? ', ...' : '';
    return `not imported, ${reason}: ${count.toLocaleString('en')} (${names.map((name) => short(printable(name))).join(', ')}${more})`;
  });
}

const SHORT = 80;
const short = (name: string): string => (name.length > SHORT ? `${name.slice(0, SHORT)}...` : name);
