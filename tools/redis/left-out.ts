/** The keys of a Redis database that were not imported: how many for each reason, and some of their names. */
import { printable } from '../transfer/key-text.js';

export const NAMES_MAX = 10;
/** Reasons come from the other server, which may be anybody: more of them are counted as one. */
export const REASONS_MAX = 32;
const OTHERS = 'other reasons';

export interface Reason {
  /** For a person, as it came: the text of the first key that had this reason. */
  readonly text: string;
  count: number;
  readonly names: Buffer[];
}

export type LeftOut = ReadonlyMap<string, Reason>;

export class LeftOutKeys {
  readonly reasons = new Map<string, Reason>();
  /** Keys that Redis or the cluster refused. Other types and sizes are expected, and not among them. */
  refused = 0;

  /** `text`: for a person, where the reason alone does not say it. */
  add(reason: string, key: Buffer, text = reason): void {
    let one = this.reasons.get(reason);
    if (one === undefined && this.reasons.size >= REASONS_MAX) {
      [reason, text] = [OTHERS, OTHERS];
      one = this.reasons.get(reason);
    }
    if (one === undefined) this.reasons.set(reason, (one = { text, count: 0, names: [] }));
    one.count++;
    if (one.names.length < NAMES_MAX) one.names.push(key);
  }

  refuse(reason: string, key: Buffer, text = reason): void {
    this.refused++;
    this.add(reason, key, text);
  }
}

export function leftOutLines(leftOut: LeftOut): string[] {
  return [...leftOut.values()].map(({ text, count, names }) => {
    const more = count > names.length ? ', ...' : '';
    const named = names.map((name) => short(printable(name), NAME_SHORT)).join(', ');
    return `not imported, ${ofRedis(text)}: ${count.toLocaleString('en')} (${named}${more})`;
  });
}

const NAME_SHORT = 80;
const TEXT_SHORT = 200;
const short = (text: string, most: number): string => (text.length > most ? `${text.slice(0, most)}...` : text);

/** A text of the other server for a terminal. Its replies are read as latin1, a byte for each character. */
export const ofRedis = (text: string): string => short(printable(Buffer.from(text, 'latin1')), TEXT_SHORT);
