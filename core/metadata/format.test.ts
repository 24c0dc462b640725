/** Servers of two formats side by side: this version's, and a later one that is made up. */
import test from 'ava';
import { bootstrapOf, hexOf, joinOf, MetadataLog } from '../../test/support/metadata-log.js';
import { FarkvError } from '../errors.js';
import { encodeValue } from '../protocol/value.js';
import { FORMAT_FIRST, FORMAT_NEWEST } from './format.js';
import { MetadataMachine } from './machine.js';

const NEXT = FORMAT_NEWEST + 1;
const raise = { t: 'raise-format', format: NEXT } as const;
const later = {
  instanceOf: FarkvError,
  code: 'ERR_PROTOCOL_VERSION',
  message: new RegExp(
    `later version of farkv \\(format ${NEXT}.*knows format ${FORMAT_NEWEST}: upgrade this server`,
    'u',
  ),
} as const;
/** A cluster of the newest format. */
function made(log: MetadataLog): MetadataLog {
  log.do(bootstrapOf(2, ['s1']), joinOf('s1', 1), { t: 'assign-shards' });
  for (let format = FORMAT_FIRST + 1; format <= FORMAT_NEWEST; format++) log.do({ t: 'raise-format', format });
  return log;
}

test('this version and a later one have the same state and snapshot as long as the format was not raised', (t) => {
  const [now, next] = [made(new MetadataLog()), made(new MetadataLog(NEXT))];
  t.deepEqual(next.machine.snapshot(), now.machine.snapshot());
  const again = new MetadataMachine();
  again.restore(next.machine.snapshot());
  t.deepEqual(again.state, now.state);
});

test('the format is raised by one, once, and what is of a format after the next is refused', (t) => {
  const log = made(new MetadataLog(NEXT + 1));
  t.regex(
    log.try({ t: 'raise-format', format: NEXT + 1 }),
    new RegExp(`ERR_BUSY: the metadata is at format ${FORMAT_NEWEST}`, 'u'),
  );
  t.is(log.try(raise), 'ok');
  t.is(log.state.formatVersion, NEXT);
  t.regex(log.try(raise), /ERR_BUSY/);
});

test('a server stops at the entry that raises the format to one that it does not know, by name, and applies nothing of it', (t) => {
  const log = made(new MetadataLog());
  const before = log.state;
  t.throws(() => log.try(raise), later);
  t.is(log.state, before);
});

test('a server stops at an entry of a later format, whether it knows the command or not', (t) => {
  const { machine } = made(new MetadataLog());
  const before = machine.state;
  for (const command of [{ t: 'no-op' }, { t: 'split-shard', shard: 1 }]) {
    t.throws(() => machine.apply(encodeValue({ format: NEXT, proposer: hexOf(7), sequence: 1, command })), later);
  }
  t.is(machine.state, before);
});

test('a server refuses a snapshot of a later format; one that knows it has the same state', (t) => {
  const { machine } = made(new MetadataLog(NEXT)).do(raise);
  t.throws(() => new MetadataMachine().restore(machine.snapshot()), later);
  const same = new MetadataMachine(NEXT);
  same.restore(machine.snapshot());
  t.deepEqual(same.state, machine.state);
  t.deepEqual(same.snapshot(), machine.snapshot());
});
