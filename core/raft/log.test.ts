/** The log held against a plain array of terms. */
import test from 'ava';
import { seeded } from '../../test/support/random.js';
import { EntryType, entryBytes, type Entry } from './entry.js';
import { RaftLog } from './log.js';

const entry = (index: number, term: number, size = 3): Entry => ({
  index,
  term,
  type: EntryType.Normal,
  data: new Uint8Array(size),
});

test('appends of leaders, compaction and truncation do the same to the log as to an array', (t) => {
  const random = seeded(t, import.meta.filename);
  for (let round = 0; round < 200; round++) {
    const log = new RaftLog(0, 0, []);
    // terms[i] is the term at index i; terms[0] stands before the log.
    let terms = [0];
    let base = 0;
    let term = 1;
    for (let step = 0; step < 40; step++) {
      term += random.below(2);
      const prev = log.commit + random.below(terms.length - log.commit);
      const first = Math.max(prev, log.commit);
      const fresh: number[] = [];
      // What is committed is not contradicted, and terms do not fall.
      for (let i = 0, last = terms[first] ?? 0; i < random.below(5); i++)
        fresh.push((last = Math.max(last, term - random.below(2))));
      const entries = fresh.map((of, i) => entry(first + 1 + i, of));
      const before = [...terms];
      const done = log.appendAfter(first, terms[first] ?? 0, entries);
      const conflict = fresh.findIndex((of, i) => before[first + 1 + i] !== of);
      if (conflict >= 0) terms = [...terms.slice(0, first + 1 + conflict), ...fresh.slice(conflict)];
      t.is(done?.lastNew, first + fresh.length);
      t.is(done?.truncatedAt, conflict >= 0 && first + 1 + conflict < before.length ? first + 1 + conflict : undefined);
      log.stableTo(log.lastIndex, log.lastTerm);
      log.commitTo(log.commit + random.below(log.lastIndex - log.commit + 1));
      log.appliedTo(log.commit);
      if (random.below(5) === 0) {
        base = Math.max(base, log.applied - random.below(3));
        log.compactTo(base);
      }
      t.is(log.lastIndex, terms.length - 1);
      t.is(log.baseIndex, base);
      for (let index = 0; index < terms.length + 2; index++)
        t.is(log.termAt(index), index < base ? undefined : terms[index]);
      t.is(log.bytes, (log.lastIndex - base) * entryBytes(entry(1, 1)));
      t.is(log.appendAfter(log.lastIndex + 1, term, []), undefined, 'behind a gap nothing fits');
    }
  }
});

test('a truncation takes back what was stable, and a late word of the disk about what is gone changes nothing', (t) => {
  const log = new RaftLog(0, 0, [entry(1, 1), entry(2, 1), entry(3, 1)]);
  t.is(log.stable, 3);
  log.appendAfter(1, 1, [entry(2, 2)]);
  t.is(log.stable, 1);
  log.stableTo(3, 1);
  log.stableTo(2, 1);
  t.is(log.stable, 1);
  log.stableTo(2, 2);
  t.is(log.stable, 2);
});

test('entries behind one that this log has in another term do not fit', (t) => {
  const log = new RaftLog(0, 0, [entry(1, 1), entry(2, 1)]);
  t.is(log.appendAfter(2, 2, [entry(3, 2)]), undefined);
  t.is(log.lastIndex, 2);
});

test('of two logs the one with the newer last term is more up to date, and of equal terms the longer one', (t) => {
  const log = new RaftLog(
    0,
    0,
    [1, 1, 3].map((term, i) => entry(i + 1, term)),
  );
  t.deepEqual(
    [
      [9, 2],
      [2, 3],
      [3, 3],
      [4, 3],
      [1, 4],
    ].map(([index, term]) => log.isUpToDate(index!, term!)),
    [false, false, true, true, true],
  );
});

test('what must not happen to a log is refused', (t) => {
  const log = new RaftLog(0, 0, [entry(1, 1), entry(2, 1)]);
  log.commitTo(2);
  t.throws(() => log.appendAfter(1, 1, [entry(2, 2)]), { message: /a committed entry is never replaced/ });
  t.throws(() => log.commitTo(3), { message: /lost entries/ });
  t.throws(() => log.append([entry(5, 2)]), { message: /follow each other/ });
  t.throws(() => log.append([entry(3, 0)]), { message: /terms do not fall/ });
  t.throws(() => log.compactTo(1), { message: /only applied/ });
  t.throws(() => log.restore(2, 1), { message: /goes forward/ });
});

test('a slice has at least one entry and no more bytes than asked for beyond it', (t) => {
  const log = new RaftLog(0, 0, [entry(1, 1, 1000), entry(2, 1, 10), entry(3, 1, 10), entry(4, 1, 10)]);
  t.deepEqual(
    log.slice(1, 4, 1).map(({ index }) => index),
    [1],
  );
  t.deepEqual(
    log.slice(2, 4, 2 * entryBytes(entry(1, 1, 10))).map(({ index }) => index),
    [2, 3],
  );
  t.deepEqual(
    log.slice(2, 3, Infinity).map(({ index }) => index),
    [2, 3],
  );
});

test('the last place where two logs can agree is found by terms', (t) => {
  const log = new RaftLog(
    0,
    0,
    [1, 1, 3, 3, 5].map((term, i) => entry(i + 1, term)),
  );
  t.deepEqual(log.lastIndexNotAfter(5, 5), { index: 5, term: 5 });
  t.deepEqual(log.lastIndexNotAfter(5, 4), { index: 4, term: 3 });
  t.deepEqual(log.lastIndexNotAfter(3, 2), { index: 2, term: 1 });
  t.deepEqual(log.lastIndexNotAfter(9, 0), { index: 0, term: 0 });
});
