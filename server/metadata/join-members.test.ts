/** How a start becomes a member. With processes: test/integration/membership.long.test.ts. */
import test from 'ava';
import type { Command } from '../../core/metadata/commands.js';
import { EMPTY, reduce } from '../../core/metadata/reduce.js';
import type { MetadataState } from '../../core/metadata/state.js';
import { Log } from '../log.js';
import { joinMembers } from './join-members.js';

const [INSTANCE, INCARNATION] = ['0000000000000001', '0000000000000002'];

/** Starts s4 with the part of the log that it has; each proposal comes after the rest, where there is one. */
async function start(
  rest: readonly MetadataState[],
): Promise<{ readonly state: MetadataState; readonly did: string[] }> {
  let state: MetadataState = { ...EMPTY, clusterId: 'ab'.repeat(16), voters: ['s1'] };
  const did: string[] = [];
  const propose = (command: Command): Promise<{ readonly ok: true }> => {
    state = rest[did.length] ?? state;
    did.push(command.t);
    const reduced = reduce(state, command);
    if (reduced.ok) ({ state } = reduced);
    return Promise.resolve({ ok: true });
  };
  const member = { id: 's4', incarnation: INCARNATION, instance: INSTANCE, control: [], fabric: [], memoryBytes: 1 };
  await joinMembers({ member, state: () => state, propose, log: new Log('error', () => undefined) });
  return { state, did };
}

const has = (instance: string): MetadataState => ({
  ...EMPTY,
  clusterId: 'ab'.repeat(16),
  voters: ['s1'],
  servers: [{ id: 's4', raftId: 4, instance, control: [], draining: false }],
});

test('a server whose log does not name it yet joins once it does', async (t) => {
  const { state, did } = await start([has(INSTANCE)]);
  t.deepEqual(did, ['no-op', 'member-join']);
  t.is(state.members.get('s4')?.incarnation, INCARNATION);
});

test('a server was removed when a current log does not name it, or names another directory', async (t) => {
  const removed = { code: 'ERR_REMOVED', message: /s4 was removed from the cluster: .*--join/ };
  await t.throwsAsync(start([]), removed);
  await t.throwsAsync(start([has('00000000000000ff')]), removed);
});
