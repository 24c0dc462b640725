/**
 * Tenants: groups of clients that are to have nothing to do with each other's data. Each has shards of its own,
 * in a row, and with them tables, regions and rkeys of its own; a token opens one of them (server/control/auth.ts), a
 * ticket carries its number, and owners hold clients to it (native/dataplane). Which shards are whose is fixed when the
 * cluster is made.
 *
 * The default domain has number 0 and the first shards; those that the metadata lists follow, numbered from 1 in its
 * order. A cluster that was made without any has the default one alone.
 */
import type { MetadataState } from './state.js';

export const DEFAULT_TENANT = 0;
/** Beside the default one. As DATAPLANE_TRUSTS_MAX of native/dataplane/dataplane.h says, with it. */
export const TENANTS_MAX = 15;

/** Shards from `first` on. */
export interface ShardRange {
  readonly first: number;
  readonly count: number;
}

type Domains = Pick<MetadataState, 'shards' | 'tenants'>;

/** Of every domain, by its number: together all shards. */
export function tenantRanges({ shards, tenants }: Domains): ShardRange[] {
  const named = tenants.reduce((sum, d) => sum + d.shards, 0);
  const ranges: ShardRange[] = [{ first: 0, count: shards.length - named }];
  for (const { shards: count } of tenants) {
    const before = ranges.at(-1) ?? { first: 0, count: 0 };
    ranges.push({ first: before.first + before.count, count });
  }
  return ranges;
}

/** Empty for a number that no domain has. */
export function tenantRange(state: Domains, tenant: number): ShardRange {
  return tenantRanges(state)[tenant] ?? { first: 0, count: 0 };
}

/** The number of the domain of this name (undefined: the default one); undefined: there is none. */
export function tenantNumber(
  { tenants }: Pick<MetadataState, 'tenants'>,
  name: string | undefined,
): number | undefined {
  if (name === undefined) return DEFAULT_TENANT;
  const at = tenants.findIndex((d) => d.name === name);
  return at < 0 ? undefined : at + 1;
}
