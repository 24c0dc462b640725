/**
 * Which configurations were searched, and which others they cover: those with the same musts taken, the same value and
 * the same version of it, that used the same options or more.
 *
 * A covered configuration need not be searched. Claim: what can follow it can follow the one that covers it.
 *   1. The other one can use every option that it can still use: that one used no more of them, and none of them has
 *      moved its time further on.
 *   2. Every version that is new to it is new to the other: the highest known version is that of an operation taken or
 *      used, and the other one has no more of them.
 *   3. Musts and value are the same, and nothing else decides what fits.
 */
import type { Configuration } from './search.js';

export class Searched {
  readonly #used = new Map<string, Configuration['used'][]>();
  /** Configurations that were searched. */
  size = 0;

  /** False: a configuration that covers this one was searched. */
  add({ low, beyond, used, state }: Configuration): boolean {
    const key = `${low}:${beyond.join()}:${state.value}.${state.version}`;
    const known = this.#used.get(key);
    if (known?.some((one) => one.every((i) => used.includes(i))) === true) return false;
    if (known === undefined) this.#used.set(key, [used]);
    else known.push(used);
    this.size++;
    return true;
  }
}
