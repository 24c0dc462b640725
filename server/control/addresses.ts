/**
 * Source addresses as bounds count them: whoever has one address of an IPv6 network of 64 bits has all of them, so
 * these are one; an IPv4 address in IPv6 form is the IPv4 address. And a memory of those that have shown a token.
 */
import { isIPv6 } from 'node:net';

export function sourceOf(address: string | undefined): string {
  if (address === undefined) return '';
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  if (mapped !== undefined) return mapped;
  if (!isIPv6(address)) return address;
  const [before = '', after] = (address.split('%')[0] ?? '').split('::');
  const head = before === '' ? [] : before.split(':');
  const tail = after === undefined || after === '' ? [] : after.split(':');
  const zeros = after === undefined ? [] : Array.from({ length: 8 - head.length - tail.length }, () => '0');
  const groups = [...head, ...zeros, ...tail].slice(0, 4).map((group) => Number.parseInt(group, 16).toString(16));
  return `${groups.join(':')}::/64`;
}

/** The last `most` addresses that were added. */
export class RecentAddresses {
  readonly #most: number;
  readonly #all = new Set<string>();

  constructor(most: number) {
    this.#most = most;
  }

  has(source: string): boolean {
    return this.#all.has(source);
  }

  add(source: string): void {
    this.#all.delete(source);
    this.#all.add(source);
    if (this.#all.size <= this.#most) return;
    for (const oldest of this.#all) {
      this.#all.delete(oldest);
      break;
    }
  }
}
