/** When a server may be stopped, and the reason that is given where it may not. */
import test from 'ava';
import type { CopyState } from '../core/metadata/state.js';
import { whyNotStopped } from './safe-to-stop.js';
import type { ClusterStatus, MemberStatus } from './status.js';

const IDS = ['s1', 's2', 's3'];

interface Given {
  /** By server, of shard 0, which s1 owns; undefined: it is a cache. */
  readonly copies?: Readonly<Record<string, CopyState>>;
  readonly minInSync?: number;
  readonly silent?: readonly string[];
  readonly stopping?: readonly string[];
}

function status({ copies, minInSync = 1, silent = [], stopping = [] }: Given): ClusterStatus {
  const members = IDS.map(
    (id) =>
      ({
        id,
        role: 'voter',
        state: silent.includes(id) ? 'unreachable' : 'up',
        node: { stopping: stopping.includes(id) },
      }) as MemberStatus,
  );
  const all = Object.entries(copies ?? {}).map(([member, state]) => ({ member, state }));
  const inSync = all.filter((c) => c.state === 'in-sync').length;
  const kept = copies === undefined ? {} : { copies: { config: 1, inSync, wanted: 2, minInSync, copies: all } };
  return { members, shards: [{ shard: 0, owner: 's1', ...kept }] } as unknown as ClusterStatus;
}

test('a server may be stopped when others have in sync what it has, and enough of them', (t) => {
  const two = status({ copies: { s1: 'in-sync', s2: 'in-sync' } });
  for (const id of IDS) t.is(whyNotStopped(two, id), undefined);
  const needed = status({ copies: { s1: 'in-sync', s2: 'in-sync' }, minInSync: 2 });
  t.is(whyNotStopped(needed, 's2'), 'shard 0 would have 1 in sync, and takes no change with fewer than 2');
  t.is(whyNotStopped(needed, 's3'), undefined);
});

test('a copy that is not in sync, or at a server that does not answer, does not count', (t) => {
  const none = 'shard 0 has no other copy in sync at a server that answers';
  t.is(whyNotStopped(status({ copies: { s1: 'in-sync', s2: 'joining' } }), 's1'), none);
  t.is(whyNotStopped(status({ copies: { s1: 'in-sync', s2: 'joining' } }), 's2'), undefined);
  t.is(whyNotStopped(status({ copies: { s1: 'in-sync', s2: 'eligible' }, minInSync: 2 }), 's1'), none);
  const five = status({ copies: { s1: 'in-sync', s2: 'in-sync' }, silent: ['s2'] });
  const more = [...five.members, ...['s4', 's5'].map((id) => ({ ...five.members[0]!, id }))];
  t.is(whyNotStopped({ ...five, members: more }, 's1'), none);
});

test('a server that is stopping counts as one that does not answer', (t) => {
  const two = status({ copies: { s1: 'in-sync', s2: 'in-sync' }, stopping: ['s2'] });
  t.is(whyNotStopped(two, 's1'), 'the metadata group would stop: without s1, 1 of 3 voters answer');
  const more = [...two.members, ...['s4', 's5'].map((id) => ({ ...two.members[0]!, id }))];
  t.is(whyNotStopped({ ...two, members: more }, 's1'), 'shard 0 has no other copy in sync at a server that answers');
  t.is(whyNotStopped({ ...two, members: more }, 's2'), undefined);
});

test('a cache, the last voters and a stranger', (t) => {
  t.regex(whyNotStopped(status({}), 's1') ?? '', /shard 0 has no copy but that of s1/);
  t.is(whyNotStopped(status({}), 's2'), undefined);
  const silent = status({ copies: { s1: 'in-sync', s2: 'in-sync' }, silent: ['s3'] });
  t.is(whyNotStopped(silent, 's2'), 'the metadata group would stop: without s2, 1 of 3 voters answer');
  t.is(whyNotStopped(silent, 's3'), undefined);
  t.throws(() => whyNotStopped(status({}), 's9'), { code: 'ERR_CONFIG' });
});
