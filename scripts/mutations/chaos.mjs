/** What the chaos run's checks must not let pass, each with the test that notices when they do. */
const losses = (title) => ({ test: 'test/chaos/permitted-losses.test.ts', title });
const judge = (title) => ({ test: 'test/chaos/judge.test.ts', title });
const values = (title) => ({ test: 'test/chaos/values.test.ts', title });
const calls = (title) => ({ test: 'test/chaos/calls.test.ts', title });
const expiry = (title) => ({ test: 'test/chaos/expiry.test.ts', title });

export const mutations = [
  {
    name: 'chaos: a loss is permitted at any new epoch',
    file: 'test/chaos/judge.ts',
    find: 'causes.cause(before, next) === undefined',
    replace: 'false',
    caughtBy: judge(
      'shards of a living owner that are given away are one violation, which names a key and the write that is lost',
    ),
  },
  {
    name: 'chaos: an owner that was stopped with a majority may lose its shards',
    file: 'test/chaos/permitted-losses.ts',
    find: 'this.#silences(intersection([apart], hears))',
    replace: 'this.#silences([apart])',
    caughtBy: losses(
      'when s1, s2 of 3 servers, a majority, are stopped together nothing may be lost, not even by one that stood still',
    ),
  },
  {
    name: 'chaos: an owner that was stopped for a moment may lose its shards',
    file: 'test/chaos/permitted-losses.ts',
    find: 'this.#leaseNs * (1 - 1 / RENEWALS) - SLACK_NS',
    replace: '0',
    caughtBy: losses(
      'an owner that was stopped for its lease may lose its shards, one that was stopped for less may not',
    ),
  },
  {
    name: 'chaos: an owner has no grace after its leader stood still for a lease',
    file: 'test/chaos/permitted-losses.ts',
    find: 'gapNs >= this.#leaseNs',
    replace: 'gapNs === Infinity',
    caughtBy: losses(
      'an owner that was silent for less than its lease before a majority was stopped, and for less after it, loses nothing',
    ),
  },
  {
    name: 'chaos: one end of a process permits all losses after it',
    file: 'test/chaos/permitted-losses.ts',
    find: '&& f.toNs >= from,',
    replace: ',',
    caughtBy: losses('one end of a process permits one loss'),
  },
  {
    name: 'chaos: a shard that moved may have lost its values',
    file: 'test/chaos/epochs.ts',
    find: 'if (kept.has(keptName(next.shard, e, next.owner))) continue;',
    replace: '',
    caughtBy: judge('a shard that moved has its values: nothing is lost with it, whatever happened to its owner'),
  },
  {
    name: 'chaos: a value may be of any key',
    file: 'test/chaos/values.ts',
    find: 'makeValue(key, id, bytes.length).equals(bytes)',
    replace: "makeValue(bytes.toString().split('|', 1)[0], id, bytes.length).equals(bytes)",
    caughtBy: values('the value of another key is seen'),
  },
  {
    name: 'chaos: only the beginning of a value is looked at',
    file: 'test/chaos/values.ts',
    find: ' && makeValue(key, id, bytes.length).equals(bytes))',
    replace: ')',
    caughtBy: values('one byte of another value anywhere is seen'),
  },
  {
    name: 'chaos: a value that has become another one of its key is as it was',
    file: 'test/chaos/held.ts',
    find: ' && seen.id === value.id) return;',
    replace: ') return;',
    caughtBy: {
      test: 'test/chaos/held.test.ts',
      title: 'a whole value of the same key in the place of another is seen too',
    },
  },
  {
    name: 'chaos: the histories never call getManyInto',
    file: 'test/chaos/calls-reads.ts',
    find: "  { name: 'getManyInto', weight: 6, keyed: true, run: getManyInto },\n",
    replace: '',
    caughtBy: calls(
      'every method of a client and of its views is called by the histories, and nothing else is in their table',
    ),
  },
  {
    name: 'chaos: a value that expires is never late',
    file: 'test/chaos/expiry.ts',
    find: 'if (read.call > writer.end + ttlNs + LATE_NS)',
    replace: 'if (read.call < 0)',
    caughtBy: expiry('refused: a value long after its expiry'),
  },
  {
    name: 'chaos: a value that expires may be gone at any time',
    file: 'test/chaos/expiry.ts',
    find: 'if (changes.some(between) || losses.some(between)) continue;',
    replace: 'continue;',
    caughtBy: expiry('refused: an absence long before the expiry'),
  },
  {
    name: 'chaos: a scan may leave anything out',
    file: 'test/chaos/judge.ts',
    find: 'if (value !== undefined) missing.push',
    replace: 'if (value === null) missing.push',
    caughtBy: judge('a scan that misses a key that was there is a violation'),
  },
];
