/**
 * The replicated metadata: entries of the log as a member, a proposer or a disk may bring them, and snapshots. What is
 * refused changes nothing; what is accepted makes a state that its own checks accept, and that a snapshot brings back.
 */
import { FarkvError } from '../../core/errors.js';
import { encodeProposal, type Command } from '../../core/metadata/commands.js';
import { FORMAT_NEWEST } from '../../core/metadata/format.js';
import { MetadataMachine } from '../../core/metadata/machine.js';
import { encodeValue } from '../../core/protocol/index.js';
import { bootstrapOf, hexOf, joinOf } from '../support/metadata-log.js';
import type { Input, Step } from './input.js';
import { must, type FuzzTarget } from './target.js';

const region = { provider: 'tcp', kind: 'index', segment: 0, tag: 1, bytes: 4096, remoteAddress: '4096', rkey: '7' };
/** As proposals of one proposer; the sequence is the command's place. */
const COMMANDS: readonly unknown[] = [
  bootstrapOf(4, ['s1', 's2', 's3']),
  joinOf('s1', 1),
  joinOf('s2', 2),
  joinOf('s3', 3),
  { t: 'assign-shards' },
  {
    t: 'shard-opened',
    shard: 0,
    owner: 's1',
    memberIncarnation: hexOf(1),
    epoch: 1,
    incarnation: hexOf(77),
    layoutEpoch: 1,
    buckets: 64,
    regions: [region],
  },
  {
    t: 'shard-layout',
    shard: 0,
    incarnation: hexOf(77),
    from: 1,
    layoutEpoch: 2,
    buckets: 128,
    add: [{ ...region, kind: 'heap', segment: 1 }],
    remove: [],
  },
  { t: 'server-add', id: 's4', raftId: 0, control: ['127.0.0.1:7400'] },
  { t: 'server-add', id: 's5', raftId: 55, instance: hexOf(5), control: ['127.0.0.1:7400'], peer: ['127.0.0.1:9400'] },
  { t: 'shard-move', shard: 0, epoch: 1, to: 's2' },
  { t: 'server-drain', id: 's1', draining: true },
  { t: 'tickets-revoke', client: hexOf(9), atMs: 5 },
  { t: 'raise-format', format: 2 },
  { t: 'no-op' },
  joinOf('s1', 11, 1),
  { t: 'server-remove', id: 's4', raftId: 0 },
];
const proposal = (command: unknown, i: number): Step => [
  'frame',
  { format: FORMAT_NEWEST, proposer: 'aa'.repeat(8), sequence: i + 1, command },
];

function snapshotOf(count: number): unknown {
  const machine = new MetadataMachine();
  COMMANDS.slice(0, count).forEach((command, i) => {
    try {
      machine.apply(encodeProposal({ proposer: 'aa'.repeat(8), sequence: i + 1, command: command as Command }));
    } catch (error) {
      if (!(error instanceof FarkvError)) throw error;
    }
  });
  const other = new MetadataMachine();
  other.restore(machine.snapshot());
  return {
    format: machine.state.formatVersion,
    state: { ...machine.state, members: [...machine.state.members.values()] },
    proposers: [],
  };
}

const first: readonly Input[] = [
  COMMANDS.map(proposal),
  ...COMMANDS.map((command, i): Input => [...COMMANDS.slice(0, 7).map(proposal), proposal(command, i + 20)]),
  ...[1, 6, 10].map((count): Input => [['turn'], ['frame', snapshotOf(count)]]),
];

const bodyOf = (step: Step): Uint8Array | undefined =>
  step[0] === 'frame' ? encodeValue(step[1]) : step[0] === 'bytes' ? step[1] : undefined;

function run(input: Input): void {
  const machine = new MetadataMachine();
  // What follows a turn is a snapshot, for the step behind it alone.
  let restores = false;
  for (const step of input) {
    const bytes = bodyOf(step);
    if (bytes === undefined) {
      restores = true;
      continue;
    }
    const before = machine.state;
    try {
      if (restores) machine.restore(bytes);
      else machine.apply(bytes);
    } catch (error) {
      must(error instanceof FarkvError, `not a FarkvError: ${String(error)}`);
      must(machine.state === before, 'an entry that cannot be read changes the state');
    }
    restores = false;
    if (machine.state === before) continue;
    const other = new MetadataMachine();
    const snapshot = machine.snapshot();
    other.restore(snapshot);
    must(Buffer.from(other.snapshot()).equals(snapshot), 'a snapshot brings another state back');
  }
}

export const metadata: FuzzTarget = {
  name: 'metadata',
  first,
  open: () => Promise.resolve({ run, close: () => Promise.resolve() }),
};
