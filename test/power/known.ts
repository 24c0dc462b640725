/**
 * What is known outside of the machine whose power is cut: values that were acknowledged or READ there, by the lines
 * that it printed before the cut. Afterwards each of these keys must have that value, or a later one.
 *
 * A key has one writer. Versions of its values rise, also from one start of the machine to the next. A write that was
 * under way at a cut may be there or not.
 */
import { readValue } from '../chaos/values.js';

/** A start of the machine writes fewer values. */
const OF_ONE_START = 1_000_000;

export type Line =
  | { readonly t: 'ack' | 'saw'; readonly key: string; readonly version: number }
  /** At the beginning, of all keys. undefined: it is not there. */
  | { readonly t: 'has'; readonly key: string; readonly version: number | undefined }
  /** Bytes that no writer wrote. */
  | { readonly t: 'wrong'; readonly key: string; readonly what: string }
  /** How far the machine is. */
  | { readonly t: 'mounted' | 'ready' | 'checked' };

/** A line that the cut ended early has no end mark, and says nothing. */
const END = ' .';

export const textOf = (line: Line): string => `${JSON.stringify(line)}${END}\n`;

export function lineOf(text: string): Line | undefined {
  return text.startsWith('{') && text.endsWith(END) ? (JSON.parse(text.slice(0, -END.length)) as Line) : undefined;
}

export const versionAt = (start: number, n: number): number => start * OF_ONE_START + n;

/** The version of a value, or what is wrong with its bytes. */
export function versionOf(key: string, value: Uint8Array): { readonly version: number } | { readonly wrong: string } {
  const seen = readValue(key, value);
  return 'id' in seen ? { version: Number(seen.id) } : seen;
}

export class Known {
  readonly #least = new Map<string, number>();
  acknowledged = 0;
  read = 0;
  /** Keys that were looked at after a cut. */
  checked = 0;
  readonly losses: string[] = [];

  learn(line: Line): void {
    switch (line.t) {
      case 'ack':
        this.acknowledged++;
        this.#raise(line.key, line.version);
        return;
      case 'saw':
        this.read++;
        this.#raise(line.key, line.version);
        return;
      case 'has': {
        const least = this.#least.get(line.key);
        if (least !== undefined) this.checked++;
        if (least !== undefined && (line.version ?? 0) < least)
          this.losses.push(`${line.key} is at ${line.version ?? 'nothing'}, and ${least} was acknowledged or READ`);
        if (line.version !== undefined) this.#least.set(line.key, line.version);
        return;
      }
      case 'wrong':
        this.losses.push(`${line.key} has bytes that nobody wrote: ${line.what}`);
        return;
      case 'mounted':
      case 'ready':
      case 'checked':
        return;
    }
  }

  #raise(key: string, version: number): void {
    this.#least.set(key, Math.max(version, this.#least.get(key) ?? 0));
  }
}
