/** Metrics of the shards that a server owns, of its copies of others' shards, and of the memory of both. */
import { isNearlyFull, memoryParts, pageParts } from '../status.js';
import { byTenant, gauge, named, one, sum, type Metric } from './metric-row.js';

export const OF_SHARDS: readonly Metric[] = [
  gauge(
    'farkv_shards',
    'Shards that this server owns, by tenant and state; serving: it has a lease, and answers for them',
    ({ owned, tenants, tenantOf }) =>
      tenants.flatMap((tenant) =>
        (['closed', 'open', 'serving'] as const).map((state) => ({
          labels: { tenant, state },
          value: owned.filter((one) => one.state === state && tenantOf(one.shard) === tenant).length,
        })),
      ),
    ['tenant', 'state'],
  ),
  gauge(
    'farkv_copies_in_sync',
    'Copies in sync of the shards that this server owns, its own included, as the last leader knew',
    byTenant(({ copies }) => copies?.inSync ?? 1),
    ['tenant'],
  ),
  gauge(
    'farkv_copies_wanted',
    'Copies that these shards are to have',
    byTenant(({ copies }) => copies?.wanted ?? 1),
    ['tenant'],
  ),
  gauge(
    'farkv_shards_underreplicated',
    'Shards of this server with fewer copies in sync than are wanted',
    byTenant(({ copies }) => Number((copies?.inSync ?? 1) < (copies?.wanted ?? 1))),
    ['tenant'],
  ),
  gauge(
    'farkv_shards_too_few_copies',
    'Shards of this server that take no changes, for lack of copies in sync',
    byTenant(({ copies }) => Number(copies?.trouble === 'too few')),
    ['tenant'],
  ),
  gauge(
    'farkv_replica_lag_records',
    'Changes that are not at every copy yet',
    byTenant(({ copies }) => copies?.lag),
    ['tenant'],
  ),
  gauge('farkv_copies_held', "Copies of others' shards that this server has", ({ tables }) =>
    one(tables.filter(({ copy }) => copy?.role === 'backup').length),
  ),
  gauge(
    'farkv_copies_held_back',
    'Copies that were late too often, and that this server does not wait for',
    ({ node }) => one(node.heldBack.length),
  ),
  gauge(
    'farkv_entries',
    'Entries of the shards that this server owns',
    byTenant(({ entries }) => entries),
    ['tenant'],
  ),
  gauge(
    'farkv_key_value_bytes',
    'Keys and values of those entries',
    byTenant(({ keyValueBytes }) => keyValueBytes),
    ['tenant'],
  ),
  gauge(
    'farkv_used_bytes',
    'Registered memory that cannot take another entry now',
    byTenant(({ usedBytes }) => usedBytes),
    ['tenant'],
  ),
  gauge(
    'farkv_shards_memory_limit_bytes',
    'What the tables of these shards may register: each refuses changes at the --memory of all servers by the number of shards',
    byTenant(({ memoryLimitBytes }) => memoryLimitBytes),
    ['tenant'],
  ),
  gauge(
    'farkv_shards_nearly_full',
    'Shards of this server that use more than nine tenths of their limit',
    byTenant((shard) => Number(isNearlyFull(shard.usedBytes, shard.memoryLimitBytes))),
    ['tenant'],
  ),
  gauge('farkv_memory_limit_bytes', '--memory', ({ status, node }) =>
    one(status.members.find(({ id }) => id === node.id)?.memoryBytes),
  ),
  gauge(
    'farkv_memory_used_bytes',
    'Registered memory of all tables, copies too, that cannot take another entry now',
    (seen) => one(sum(seen.tables, ({ usedBytes }) => usedBytes)),
  ),
  gauge(
    'farkv_memory_bytes',
    'Registered memory of all tables, copies too, by use',
    ({ tables }) =>
      named(
        'use',
        tables.map((table) => {
          const { indexFree, ...parts } = memoryParts(table);
          return { ...parts, index_free: indexFree };
        }),
      ),
    ['use'],
  ),
  gauge(
    'farkv_memory_pages_bytes',
    'The same memory by the pages behind it',
    ({ tables }) =>
      named(
        'pages',
        tables.map((table) => ({ ...pageParts(table) })),
      ),
    ['pages'],
  ),
  gauge('farkv_memory_retired_bytes', 'Registered beside that until clients forget it', ({ tables }) =>
    one(sum(tables, ({ retiredBytes }) => retiredBytes)),
  ),
  gauge('farkv_memory_private_bytes', 'Not registered: what tables keep for themselves', ({ tables }) =>
    one(sum(tables, ({ privateBytes }) => privateBytes)),
  ),
  gauge('farkv_buckets', 'Buckets of the indexes', ({ tables }) => one(sum(tables, ({ buckets }) => buckets))),
  gauge('farkv_overflow_buckets', 'Buckets that chains have beside those', ({ tables }) =>
    one(sum(tables, ({ overflowBuckets }) => overflowBuckets)),
  ),
  gauge('farkv_longest_chain_buckets', 'The longest chain of buckets', ({ tables }) =>
    one(Math.max(0, ...tables.map(({ longestChain }) => longestChain))),
  ),
];
