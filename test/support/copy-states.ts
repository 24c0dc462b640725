/** States of the metadata with copies of servers s1, s2, s3, for tests of what a start may do without its disk. */
import type { Copy, MetadataState } from '../../core/metadata/state.js';

/** Of server s2, unless named. `start`: the one that the metadata names is 'now'. */
export const copy = (state: Copy['state'], { member = 's2', start = 'now', ...more }: Partial<Copy> = {}): Copy =>
  ({ member, start, id: '00000000000000aa', state, ...more }) as Copy;
export const mine = (state: Copy['state'] = 'in-sync', more: Partial<Copy> = {}): Copy =>
  copy(state, { member: 's1', ...more });

export function stateOf(sets: readonly (readonly Copy[])[], level = 'durable'): MetadataState {
  return {
    policies: [{ level }],
    tenants: [],
    members: new Map(['s1', 's2', 's3'].map((id) => [id, { id, incarnation: 'now' }])),
    shards: sets.map((_, shard) => ({ shard })),
    copySets: sets.map((copies) => ({ copies })),
  } as unknown as MetadataState;
}
