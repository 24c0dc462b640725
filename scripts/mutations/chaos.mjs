/** What the chaos run's checks must not let pass, each with the test that notices when they do. */
const losses = (title) => ({ test: 'test/chaos/permitted-losses.test.ts', title });
const judge = (title) => ({ test: 'test/chaos/judge.test.ts', title });
const values = (title) => ({ test: 'test/chaos/values.test.ts', title });
const calls = (title) => ({ test: 'test/chaos/calls.test.ts', title });
const search = (title) => ({ test: 'test/chaos/linearizability.test.ts', title });
const soon = (what) => search(`accepted, and with a stale read refused, in few configurations: ${what}`);
const scans = (title) => ({ test: 'test/chaos/scans.test.ts', title });
const expiry = (title) => ({ test: 'test/chaos/expiry.test.ts', title });
const promise = (title) => ({ test: 'test/chaos/promise.test.ts', title });
const overtaken = (title) => ({ test: 'test/chaos/overtaken.test.ts', title });
const AGAIN = 'a server that is ended is looked at again right before';
const SEEN = 'what was seen right before the kill overtakes nobody, and neither does what is beyond the promise';
const NO_CAUSE = 'a promotion without a cut or a stop of its owner by the same fault overtakes nobody';
const BEFORE_KILL = 'a copy that is promoted has all, and an overtaken shard loses nothing before the kill';
const durable = (title) => ({ test: 'test/chaos/durable.test.ts', title });
const GONE = 'a value that was acknowledged, or READ, and is gone with its owner is a violation';
const BEYOND = 'values are lost with all copies, while that fault lasts, and older ones never come back';

export const mutations = [
  {
    name: 'chaos: a durable value may be lost as a replicated one may',
    file: 'test/chaos/judge.ts',
    find: 'if (durable) return [shard, { forbidden: [], permitted: [] }];',
    replace: '',
    caughtBy: durable('no look excuses the loss of a durable value, and none is needed'),
  },
  {
    name: 'chaos: kills of all servers need a look at the copies of durable values',
    file: 'test/chaos/judge.ts',
    find: ' && evidence.durable !== true',
    replace: '',
    caughtBy: durable('no look excuses the loss of a durable value, and none is needed'),
  },
  {
    name: 'chaos: a kill of most servers counts as one of all',
    file: 'test/chaos/all-ended.ts',
    find: 'dead.reduce(intersection)',
    replace: 'dead.slice(0, 2).reduce(intersection)',
    caughtBy: durable(
      'the moments from which on nobody ran, and those of them with a change acknowledged right before',
    ),
  },
  {
    name: 'chaos: a kill of all servers counts though no change was acknowledged',
    file: 'test/chaos/all-ended.ts',
    find: 'operations.filter(wasMade)',
    replace: 'operations',
    caughtBy: durable(
      'the moments from which on nobody ran, and those of them with a change acknowledged right before',
    ),
  },
  {
    name: 'chaos: a shard with copies may lose its values as a cache does',
    file: 'test/chaos/judge.ts',
    find: 'if (replicas !== undefined) {',
    replace: 'if (replicas === 0) {',
    caughtBy: promise(GONE),
  },
  {
    name: 'chaos: a shard loses its values with all copies of another one',
    file: 'test/chaos/judge.ts',
    find: 'look.beyond && lostWith(look).includes(shard)',
    replace: 'look.beyond',
    caughtBy: promise(BEYOND),
  },
  {
    name: 'chaos: values may be lost long after all copies were ended',
    file: 'test/chaos/judge.ts',
    find: ' && next.sinceNs <= toNs',
    replace: '',
    caughtBy: promise(BEYOND),
  },
  {
    name: 'chaos: faults beyond the promise are not noticed',
    file: 'test/chaos/judge.ts',
    find: 'if (evidence.replicas !== undefined && evidence.durable !== true)',
    replace: 'if (evidence.replicas === 0)',
    caughtBy: promise('a run whose faults went beyond the promise proves nothing, and fails'),
  },
  {
    name: 'chaos: a server is ended without a look at its copies',
    file: 'test/chaos/promise.ts',
    find: 'l.fromNs <= dead.fromNs && l.ended.includes(dead.server)',
    replace: 'l.fromNs <= dead.fromNs',
    caughtBy: promise('a server that is ended without a look is told'),
  },
  {
    name: 'chaos: all copies of a shard are ended, and it is not noticed',
    file: 'test/chaos/promise.ts',
    find: 'if (lost.length > 0)',
    replace: 'if (lost.length > look.inSync.length)',
    caughtBy: promise('the end of all copies of a shard is told, unless it was meant'),
  },
  {
    name: 'chaos: more copies are ended at once than is promised, and it is not noticed',
    file: 'test/chaos/promise.ts',
    find: 'most >= replicas',
    replace: 'most > replicas',
    caughtBy: promise('as many copies at once as there are to be are told, though more are left'),
  },
  {
    name: 'chaos: a server is ended while another fault is under way, and it is not noticed',
    file: 'test/chaos/promise.ts',
    find: 'other.fromNs < dead.fromNs && other.toNs > look.fromNs',
    replace: 'other.fromNs < look.fromNs && other.toNs < look.fromNs',
    caughtBy: promise('another fault between the look and the end is told, unless it is of the same kind'),
  },
  {
    name: 'chaos: a backup hears nothing for so long that it may be removed, and then its owner is ended',
    file: 'test/chaos/promise.ts',
    find: 'dead.fromNs - fromNs < PARTED_NS + SLACK_NS && ',
    replace: '',
    caughtBy: promise('another fault between the look and the end is told, unless it is of the same kind'),
  },
  {
    name: 'chaos: a server is ended though nobody has looked again right before',
    file: 'test/chaos/promise.ts',
    find: 'again === undefined || again.atNs > dead.fromNs || dead.fromNs - again.atNs > PARTED_NS',
    replace: 'again === undefined',
    caughtBy: promise(AGAIN),
  },
  {
    name: 'chaos: the copy that was left is ended, and it is not noticed',
    file: 'test/chaos/promise.ts',
    find: 'if (last.length > 0)',
    replace: 'if (last.length > look.inSync.length)',
    caughtBy: promise(AGAIN),
  },
  {
    name: 'chaos: who had a copy before a shard changed hands is believed to have it',
    file: 'test/chaos/promise.ts',
    find: '(again.epochs[shard] ?? 0) <= (epochs[shard] ?? 0)',
    replace: 'again.epochs.length > 0 && epochs.length > 0',
    caughtBy: promise(AGAIN),
  },
  {
    name: 'chaos: a promotion that a killed process never applied excuses a loss',
    file: 'test/chaos/overtaken.ts',
    find: 'led.some((one) => hadIt(one, dead)) && ',
    replace: '',
    caughtBy: overtaken('a promotion that the killed process had not applied overtakes nobody'),
  },
  {
    name: 'chaos: a promotion of the next process excuses the loss of the one before',
    file: 'test/chaos/overtaken.ts',
    find: ' && one.endedNs <= toNs',
    replace: ' && fromNs <= toNs',
    caughtBy: overtaken('a promotion that the killed process had not applied overtakes nobody'),
  },
  {
    name: 'chaos: a promotion that was seen before the kill excuses a loss',
    file: 'test/chaos/overtaken.ts',
    find: '(look.again.epochs[shard] ?? 0) > seen || ',
    replace: '',
    caughtBy: overtaken(SEEN),
  },
  {
    name: 'chaos: a loss is excused though another copy is left',
    file: 'test/chaos/overtaken.ts',
    find: '!others.every((member) => look.ended.includes(member))',
    replace: '!others.some((member) => look.ended.includes(member))',
    caughtBy: overtaken('a shard is not overtaken while another copy of it is left'),
  },
  {
    name: 'chaos: a promotion that no cut or stop was the cause of excuses a loss',
    file: 'test/chaos/overtaken.ts',
    find: ' && wasParted(log, look, before, dead)',
    replace: '',
    caughtBy: overtaken(NO_CAUSE),
  },
  {
    name: 'chaos: a cut that was over before the kill excuses a loss',
    file: 'test/chaos/overtaken.ts',
    find: ' && f.toNs >= dead.fromNs',
    replace: '',
    caughtBy: overtaken(NO_CAUSE),
  },
  {
    name: 'chaos: who was stopped by another fault counts as stopped by this one',
    file: 'test/chaos/overtaken.ts',
    find: ' || !look.stopped.includes(before)',
    replace: '',
    caughtBy: overtaken(NO_CAUSE),
  },
  {
    name: 'chaos: all shards may lose their values where one was overtaken',
    file: 'test/chaos/judge.ts',
    find: '.filter((one) => one.shard === shard)',
    replace: '',
    caughtBy: overtaken('the loss of one overtaken shard excuses no other'),
  },
  {
    name: 'chaos: a copy that was promoted may lack values where it is overtaken later',
    file: 'test/chaos/judge.ts',
    find: 'next.epoch > epoch && ',
    replace: '',
    caughtBy: overtaken(BEFORE_KILL),
  },
  {
    name: 'chaos: an overtaken shard may lose its values before the kill',
    file: 'test/chaos/judge.ts',
    find: 'Math.max(loss.call, one.atNs)',
    replace: 'loss.call',
    caughtBy: overtaken(BEFORE_KILL),
  },
  {
    name: 'chaos: an overtaken shard may lose its values long after the fault',
    file: 'test/chaos/judge.ts',
    find: ' && next.sinceNs <= look.toNs',
    replace: '',
    caughtBy: overtaken('what an overtaken shard held may be gone, and old values never come back'),
  },
  {
    name: 'chaos: a look for the keys of a grower fails where an owner pushes back',
    file: 'test/chaos/filling.ts',
    find: '!PASSING.has(error.code) || ',
    replace: '',
    caughtBy: {
      test: 'test/chaos/filling.test.ts',
      title: 'a look for keys goes on after what passes, for a time, and ends with any other error',
    },
  },
  {
    name: 'chaos: a copy that joins is taken for one in sync',
    file: 'test/support/status.ts',
    find: "      copies.inSync >= copies.wanted &&\n      copies.copies.every((one) => one.state === 'in-sync'),",
    replace: '      copies.copies.length >= copies.wanted,',
    caughtBy: promise('all copies are in sync only when a leader that all servers follow says so'),
  },
  {
    name: 'chaos: a leader of the past is believed where the copies are',
    file: 'test/chaos/promise.ts',
    find: ' && m.node?.term === status.term',
    replace: '',
    caughtBy: promise('all copies are in sync only when a leader that all servers follow says so'),
  },
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
    name: 'chaos: a searched configuration covers those that can still use other options',
    file: 'test/chaos/searched.ts',
    find: 'one.every((i) => used.includes(i))',
    replace: 'one.length <= used.length',
    caughtBy: search('the verdict on small random histories is that of trying every order'),
  },
  {
    name: 'chaos: a searched configuration covers none that used more options',
    file: 'test/chaos/searched.ts',
    find: 'one.every((i) => used.includes(i))',
    replace: 'one.join() === used.join()',
    caughtBy: soon('many open writes and deletes that nobody saw'),
  },
  {
    name: 'chaos: a value is replaced while a must is left that needs it',
    file: 'test/chaos/search.ts',
    find: 'value !== then.state.value && ',
    replace: 'value < 0 && ',
    caughtBy: soon('many writes at once, each of which is read later than another one ends'),
  },
  {
    name: 'chaos: musts of one effect are tried in every order',
    file: 'test/chaos/search.ts',
    find: 'if (effects.has(effect)) continue;\n      const state',
    replace: 'const state',
    caughtBy: soon('many writes at once that nobody saw'),
  },
  {
    name: 'chaos: a must stands for another one of its effect, though a loss can only come before it',
    file: 'test/chaos/search.ts',
    find: 'if (!this.#passesAnOption(here, call)) effects.add(effect);',
    replace: 'effects.add(effect);',
    caughtBy: search('accepted: of two writes at once the one that ends later came before a loss'),
  },
  {
    name: 'chaos: a value that expires is never late',
    file: 'test/chaos/expiry.ts',
    find: 'if (look.call > latest + LATE_NS)',
    replace: 'if (look.call < 0)',
    caughtBy: expiry('refused: a value long after its expiry'),
  },
  {
    name: 'chaos: a key that expires may be there without a value',
    file: 'test/chaos/expiry.ts',
    find: '? possible.whyNone(o) : undefined',
    replace: '? undefined : undefined',
    caughtBy: expiry('refused: a key that is there after a delete'),
  },
  {
    name: 'chaos: any time may be left of a key that expires',
    file: 'test/chaos/expiry.ts',
    find: 'expiry.from > latest + TOLD_NS',
    replace: 'expiry.from > latest + Infinity',
    caughtBy: expiry('refused: more time that is left after a swap that leaves it'),
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
    file: 'test/chaos/scans.ts',
    find: '.filter(({ key }) => !scan.keys.has(key))',
    replace: '.filter(() => false)',
    caughtBy: judge('a scan that misses a key that was there is a violation'),
  },
  {
    name: 'chaos: a deleteMany may say any number',
    file: 'test/chaos/deletes.ts',
    find: 'if (some.found < least || some.found > most)',
    replace: 'if (some.found < 0)',
    caughtBy: {
      test: 'test/chaos/deletes.test.ts',
      title: 'fewer than the keys that were there, and more than can have been, are wrong',
    },
  },
  {
    name: 'chaos: an update may say what it likes',
    file: 'test/chaos/calls-changes.ts',
    find: 'if (changed !== answered)',
    replace: 'if (changed === undefined)',
    caughtBy: {
      test: 'test/chaos/calls-changes.test.ts',
      title: 'an update that says it changed nothing, though its function gave a value, is wrong',
    },
  },
  {
    name: 'chaos: a count may be less than the keys that are there',
    file: 'test/chaos/scans.ts',
    find: 'if (count.count < there.length)',
    replace: 'if (count.count < 0)',
    caughtBy: scans('a count that is less than the keys that are there is wrong, of a namespace and of a prefix'),
  },
  {
    name: 'chaos: a count may be more than the keys that may be there',
    file: 'test/chaos/scans.ts',
    find: 'if (count.count > most)',
    replace: 'if (count.count > most + 1e9)',
    caughtBy: scans('a count that is more than twice the keys that may be there is wrong'),
  },
];
