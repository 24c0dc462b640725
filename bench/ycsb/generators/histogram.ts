/**
 * Field lengths from a histogram file of YCSB: `BlockSize<tab>N`, then `bucket<tab>count` lines; a bucket gives (bucket
 * + 1) * N bytes.
 */
import type { Random } from '../random.js';
import { DiscreteGenerator } from './discrete.js';
import type { Generator } from './generator.js';

export interface LengthHistogram {
  readonly blockSize: number;
  readonly counts: readonly number[];
}

export function parseLengthHistogram(text: string): LengthHistogram {
  const lines = text.split(/\r?\n/).filter((line) => line !== '');
  const numbers = lines.map((line) => line.split('\t'));
  const [title, size] = numbers[0] ?? [];
  if (title !== 'BlockSize' || !(Number(size) > 0))
    throw new RangeError('the first line is not BlockSize and a number');
  const counts: number[] = [];
  for (const [bucket, count] of numbers.slice(1)) {
    if (Number(bucket) !== counts.length || !(Number(count) >= 0))
      throw new RangeError(`buckets are not in order at "${bucket ?? ''}"`);
    counts.push(Number(count));
  }
  return { blockSize: Number(size), counts };
}

export class HistogramGenerator implements Generator {
  readonly #buckets: DiscreteGenerator<number>;

  constructor(random: Random, histogram: LengthHistogram) {
    this.#buckets = new DiscreteGenerator(
      random,
      histogram.counts.map((count, i) => [(i + 1) * histogram.blockSize, count] as const),
    );
  }

  next(): number {
    return this.#buckets.next();
  }
}
