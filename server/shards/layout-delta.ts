/** What the data plane says of a shard's segments, as the metadata has it. */
import type { Command, ShardOpened } from '../../core/metadata/commands.js';
import { segmentKey } from '../../core/metadata/reduce.js';
import { ofDevice, type Region, type Shard } from '../../core/metadata/state.js';
import type { NativeRegion, ShardLayout } from '../../native/data-plane.js';

function regionOf(r: NativeRegion): Region {
  return {
    provider: r.provider,
    ...ofDevice(r),
    kind: r.kind,
    segment: r.segment,
    tag: r.tag,
    bytes: r.bytes,
    remoteAddress: r.remoteAddress.toString(),
    rkey: r.rkey.toString(),
  };
}

function same(a: Region, b: Region): boolean {
  return a.tag === b.tag && a.bytes === b.bytes && a.remoteAddress === b.remoteAddress && a.rkey === b.rkey;
}

/** Tells the metadata of a shard that was opened. */
export function openedCommand(
  {
    shard,
    owner,
    memberIncarnation,
    epoch,
    incarnation,
  }: Pick<ShardOpened, 'shard' | 'owner' | 'memberIncarnation' | 'epoch' | 'incarnation'>,
  layout: ShardLayout,
): ShardOpened {
  return {
    t: 'shard-opened',
    shard,
    owner,
    memberIncarnation,
    epoch,
    incarnation,
    layoutEpoch: layout.layoutEpoch,
    buckets: layout.buckets,
    regions: layout.regions.map(regionOf),
  };
}

/** What brings the metadata's idea of a shard to the data plane's. */
export function layoutDelta(known: Shard, layout: ShardLayout): Extract<Command, { t: 'shard-layout' }> {
  const before = new Map(known.regions.map((r) => [segmentKey(r), r]));
  const now = layout.regions.map(regionOf);
  const present = new Set(now.map(segmentKey));
  return {
    t: 'shard-layout',
    shard: known.shard,
    incarnation: known.incarnation ?? '',
    from: known.layoutEpoch,
    layoutEpoch: layout.layoutEpoch,
    buckets: layout.buckets,
    add: now.filter((r) => {
      const old = before.get(segmentKey(r));
      return old === undefined || !same(old, r);
    }),
    remove: known.regions
      .filter((r) => !present.has(segmentKey(r)))
      .map((r) => ({ provider: r.provider, ...ofDevice(r), kind: r.kind, segment: r.segment })),
  };
}
