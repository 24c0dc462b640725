/** How lines for operators name shards. */
import type { ShardStatus } from './status.js';

export const list = (all: readonly (string | number)[]): string => all.join(', ');
export const numbers = (shards: readonly Pick<ShardStatus, 'shard'>[]): string =>
  `${shards.length === 1 ? 'shard' : 'shards'} ${list(shards.map(({ shard }) => shard))}`;
