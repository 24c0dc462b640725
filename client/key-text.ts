/**
 * The keys of a batch as one text: to fetch and read an array's elements one by one takes the native side longer than
 * to look them up.
 *
 * Not for: keys that are bytes or prepared ones. Whether the text can be used (it must be ASCII) the native side
 * decides, which has the array too.
 */
import { TEXTS_MAX } from '../native/native-client.js';
import type { Key } from './pending.js';

export class KeyText {
  /** Of the keys that were joined last; read by the native call that follows. */
  readonly lengths: Uint32Array;

  constructor(keys: number) {
    this.lengths = new Uint32Array(keys);
  }

  /** undefined: not all are texts, or together they are too long. */
  join(keys: readonly Key[]): string | undefined {
    const { lengths } = this;
    let all = 0;
    // The first look at each key: the strings come into the cache side by side, as no load here waits for the one
    // before.
    for (let i = 0; i < keys.length; i++) {
      const key = keys[i];
      if (typeof key !== 'string') return undefined;
      lengths[i] = key.length;
      all += key.length;
    }
    return all <= TEXTS_MAX ? (keys as readonly string[]).join('') : undefined;
  }
}
