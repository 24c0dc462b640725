/** The storage over a disk that is full, or that loses what was not synced, at every single operation. */
import test from 'ava';
import type { Entry, Ready, RestoredState, Snapshot } from '../../core/raft/index.js';
import { RaftStorage } from '../../server/raft-storage/index.js';
import { DurableModel } from '../sim/durable-model.js';
import { MemoryDisk, SimulatedCrash } from '../sim/memory-disk.js';
import { crc32c } from '../support/crc32c.js';
import { Random, seeded } from '../support/random.js';

const entry = (index: number, term: number, size = 30): Entry => ({
  index,
  term,
  type: 0,
  data: new Uint8Array(size).fill(index),
});
const snapshotAt = (index: number, term: number): Snapshot => ({
  meta: { index, term, config: { voters: [1], outgoing: [], learners: [] } },
  data: new Uint8Array(50).fill(index),
});

function open(disk: MemoryDisk): { storage: RaftStorage; restored: RestoredState } {
  return RaftStorage.open({
    disk,
    identity: { clusterId: 'c', memberId: 1 },
    bootstrap: [1],
    checksum: crc32c,
    rebuild: 'rebuild',
    segmentBytes: 300,
    notice: () => undefined,
    fatal: (_what, cause) => {
      throw cause;
    },
  });
}

type Action = { readonly batch: Pick<Ready, 'hardState' | 'snapshot' | 'entries'> } | { readonly own: Snapshot };

/**
 * A life in which everything that the storage does happens: appends, replacements, new segments, votes, both kinds of
 * snapshot.
 */
const LIFE: readonly Action[] = [
  { batch: { hardState: { term: 2, vote: 1, commit: 1 }, snapshot: undefined, entries: [entry(2, 2)] } },
  { batch: { hardState: undefined, snapshot: undefined, entries: [entry(3, 2), entry(4, 2, 200), entry(5, 2)] } },
  { batch: { hardState: { term: 3, vote: 0, commit: 3 }, snapshot: undefined, entries: [entry(4, 3)] } },
  { batch: { hardState: undefined, snapshot: undefined, entries: [entry(5, 3), entry(6, 3, 250)] } },
  { own: snapshotAt(4, 3) },
  { batch: { hardState: { term: 3, vote: 0, commit: 6 }, snapshot: undefined, entries: [entry(7, 3, 250)] } },
  { own: snapshotAt(6, 3) },
  { batch: { hardState: { term: 5, vote: 0, commit: 40 }, snapshot: snapshotAt(40, 4), entries: [entry(41, 5)] } },
  { batch: { hardState: { term: 6, vote: 1, commit: 40 }, snapshot: undefined, entries: [entry(42, 6, 400)] } },
  { batch: { hardState: undefined, snapshot: undefined, entries: [entry(43, 6)] } },
];

function act(storage: RaftStorage, action: Action): 'done' | 'full' {
  return 'own' in action ? storage.saveSnapshot(action.own) : storage.persist(action.batch);
}

function note(model: DurableModel, action: Action): void {
  if ('own' in action) model.snapshotSaved(action.own);
  else model.persisted(action.batch);
}

test('whatever operation of the disk a crash comes before or in, what was acknowledged comes back, and the rest whole or not at all', (t) => {
  const random = seeded(t, import.meta.filename);
  let crashes = 0;
  for (const machine of [true, false, true, true]) {
    for (let crashAt = 1; ; crashAt++) {
      const disk = new MemoryDisk('/m', new Random(random.next()));
      const { storage, restored } = open(disk);
      const model = new DurableModel(restored);
      disk.crashIn = crashAt;
      let cut: Action | undefined;
      for (const action of LIFE) {
        try {
          t.is(act(storage, action), 'done');
          note(model, action);
        } catch (error) {
          if (!(error instanceof SimulatedCrash)) throw error;
          cut = action;
          break;
        }
      }
      if (cut === undefined) break;
      crashes++;
      disk.crash(machine);
      // Recovery is cut short too, and the next one finds a consistent directory all the same.
      disk.crashIn = 1 + random.below(5);
      try {
        open(disk).storage.close();
      } catch (error) {
        if (!(error instanceof SimulatedCrash)) throw error;
      }
      disk.crash(machine);
      const { restored: found } = open(disk);
      const why = 'own' in cut ? model.restart(found, undefined, cut.own) : model.restart(found, cut.batch, undefined);
      if (why !== undefined) t.fail(`crash at operation ${crashAt} (${machine ? 'machine' : 'process'}): ${why}`);
    }
  }
  t.true(crashes > 100);
});

test('term and vote survive a crash while they are written, and one more while the damage is mended', (t) => {
  const random = seeded(t, import.meta.filename);
  for (let round = 0; round < 3000; round++) {
    const disk = new MemoryDisk('/m', new Random(random.next()));
    const { storage, restored } = open(disk);
    const model = new DurableModel(restored);
    const vote = (term: number) => ({ hardState: { term, vote: 1, commit: 1 }, snapshot: undefined, entries: [] });
    storage.persist(vote(5));
    model.persisted(vote(5));
    disk.crashIn = 1 + random.below(5);
    try {
      storage.persist(vote(6));
      model.persisted(vote(6));
    } catch (error) {
      if (!(error instanceof SimulatedCrash)) throw error;
    }
    for (let again = 0; again < 2; again++) {
      disk.crash(random.below(2) === 0);
      disk.crashIn = 1 + random.below(6);
      try {
        open(disk);
      } catch (error) {
        if (!(error instanceof SimulatedCrash)) t.fail(`round ${round}: ${String(error)}`);
      }
    }
    disk.crash(true);
    const why = model.restart(open(disk).restored, vote(6), undefined);
    if (why !== undefined) t.fail(`round ${round}: ${why}`);
  }
  t.pass();
});

test('what a start found and built on does not vanish when the machine stops later', (t) => {
  const random = seeded(t, import.meta.filename);
  for (let round = 0; round < 3; round++) {
    for (let crashAt = 1; ; crashAt++) {
      const disk = new MemoryDisk('/m', new Random(random.next()));
      const { storage, restored } = open(disk);
      const model = new DurableModel(restored);
      disk.crashIn = crashAt;
      let cut: Action | undefined;
      for (const action of LIFE) {
        try {
          act(storage, action);
          note(model, action);
        } catch (error) {
          if (!(error instanceof SimulatedCrash)) throw error;
          cut = action;
          break;
        }
      }
      if (cut === undefined) break;
      disk.crash(false);
      const again = open(disk);
      t.is(
        'own' in cut
          ? model.restart(again.restored, undefined, cut.own)
          : model.restart(again.restored, cut.batch, undefined),
        undefined,
      );
      const more = { hardState: undefined, snapshot: undefined, entries: [entry(model.lastIndex + 1, 9)] };
      t.is(again.storage.persist(more), 'done');
      model.persisted(more);
      disk.crash(true);
      let found: RestoredState | undefined;
      t.notThrows(() => (found = open(disk).restored), `crash at operation ${crashAt}`);
      if (found !== undefined)
        t.is(model.restart(found, undefined, undefined), undefined, `crash at operation ${crashAt}`);
    }
  }
});

test('without room the log stays as it was, votes are still taken, and with room it goes on', (t) => {
  const disk = new MemoryDisk('/m', new Random(1));
  const { storage, restored } = open(disk);
  const model = new DurableModel(restored);
  disk.full = true;
  for (const action of LIFE.slice(0, 2)) {
    t.is(act(storage, action), 'full');
    if ('batch' in action) model.votePersisted(action.batch.hardState);
  }
  t.is(storage.saveSnapshot(snapshotAt(1, 1)), 'full');
  t.is(storage.persist({ hardState: { term: 9, vote: 1, commit: 1 }, snapshot: undefined, entries: [] }), 'done');
  model.votePersisted({ term: 9, vote: 1, commit: 1 });
  disk.full = false;
  t.is(storage.persist({ hardState: undefined, snapshot: undefined, entries: [entry(2, 9)] }), 'done');
  model.persisted({ hardState: undefined, snapshot: undefined, entries: [entry(2, 9)] });
  disk.crash(true);
  t.is(model.restart(open(disk).restored, undefined, undefined), undefined);
});

test('without room for a new segment nothing is lost either', (t) => {
  const disk = new MemoryDisk('/m', new Random(1));
  const { storage, restored } = open(disk);
  const model = new DurableModel(restored);
  for (const action of LIFE.slice(0, 2)) {
    act(storage, action);
    note(model, action);
  }
  disk.full = true;
  for (let i = 0; i < 3; i++)
    t.is(storage.persist({ hardState: undefined, snapshot: undefined, entries: [entry(6, 2)] }), 'full');
  disk.full = false;
  for (let index = 6; index < 12; index++) {
    const batch = { hardState: undefined, snapshot: undefined, entries: [entry(index, 2, 100)] };
    t.is(storage.persist(batch), 'done');
    model.persisted(batch);
  }
  disk.crash(true);
  t.is(model.restart(open(disk).restored, undefined, undefined), undefined);
});

test('what a start finds is there after the next loss of power, also where a sync had failed', (t) => {
  for (let seed = 1; seed <= 20; seed++) {
    const disk = new MemoryDisk('/m', new Random(seed));
    const { storage } = open(disk);
    act(storage, LIFE[0]!);
    disk.failSync = true;
    const batch = { hardState: undefined, snapshot: undefined, entries: [entry(3, 2)] };
    t.throws(() => storage.persist(batch), { message: /EIO/ });
    disk.crash(false);
    const again = open(disk);
    disk.crash(true);
    t.deepEqual(open(disk).restored.entries, again.restored.entries, `seed ${seed}`);
  }
});

test('a failed sync is never tried again: it is fatal, also when it says that there is no room', (t) => {
  const disk = new MemoryDisk('/m', new Random(1));
  const { storage } = open(disk);
  disk.failSync = true;
  t.throws(() => storage.persist({ hardState: undefined, snapshot: undefined, entries: [entry(2, 1)] }), {
    message: /EIO/,
  });
  disk.crash(false);
  const again = open(disk).storage;
  disk.failSync = true;
  disk.syncError = 'ENOSPC';
  t.throws(() => again.persist({ hardState: { term: 4, vote: 1, commit: 1 }, snapshot: undefined, entries: [] }), {
    message: /ENOSPC/,
  });
});
