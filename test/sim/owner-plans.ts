/** What leaders of the simulation propose besides moves: a cluster, owners, and what operators ask for. */
import type { Command } from '../../core/metadata/commands.js';
import type { LeaseTerms, MetadataState } from '../../core/metadata/state.js';
import type { World } from './world.js';

/** A cluster where there is none. */
export function setUp(
  state: MetadataState,
  voters: readonly string[],
  ownerLease: LeaseTerms,
  shards: number,
): Command | undefined {
  if (state.clusterId === '') {
    return {
      t: 'bootstrap',
      clusterId: '1f'.repeat(16),
      hashSeed: '2f'.repeat(16),
      ticketSecret: '3f'.repeat(16),
      shards,
      voters,
      votersMax: 9,
      ownerLease,
    };
  }
  return undefined;
}

/** Operators who change their minds. */
export function unrest({ random, forgetLate }: World, state: MetadataState): Command | undefined {
  if (forgetLate || random.below(6) > 0) return undefined;
  const server = random.pick(state.servers);
  const s = random.pick(state.shards);
  const members = [...state.members.keys()];
  if (random.below(4) === 0 || members.length === 0)
    return { t: 'server-drain', id: server.id, draining: !server.draining };
  return { t: 'shard-move', shard: s.shard, epoch: s.epoch, to: random.pick(members) };
}
