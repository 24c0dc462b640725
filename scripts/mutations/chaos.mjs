const values = (title) => ({ test: 'test/chaos/values.test.ts', title });
const promise = (title) => ({ test: 'test/chaos/promise.test.ts', title });
const overtaken = (title) => ({ test: 'test/chaos/overtaken.test.ts', title });
const durable = (title) => ({ test: 'test/chaos/durable.test.ts', title });
const GONE = 'a value that was acknowledged, or READ, and is gone with its owner is a violation';

export const mutations = [
  {
    name: 'chaos: a durable value may be lost as a replicated one may',
    file: 'test/chaos/judge.ts',
    find: 'if (durable) return [shard, { forbidden: [], permitted: [] }];',
    replace: '',
    caughtBy: durable('no look excuses the loss of a durable value, and none is needed'),
  },
  {
    name: 'chaos: a shard with copies may lose its values as a cache does',
    file: 'test/chaos/judge.ts',
    find: 'if (replicas !== undefined) {',
    replace: 'if (replicas === 0) {',
    caughtBy: promise(GONE),
  },
  {
    name: 'chaos: a loss is excused though another copy is left',
    file: 'test/chaos/overtaken.ts',
    find: '!others.every((member) => look.ended.includes(member))',
    replace: '!others.some((member) => look.ended.includes(member))',
    caughtBy: overtaken('a shard is not overtaken while another copy of it is left'),
  },
  {
    name: 'chaos: a value may be of any key',
    file: 'test/chaos/values.ts',
    find: 'makeValue(key, id, bytes.length).equals(bytes)',
    replace: "makeValue(bytes.toString().split('|', 1)[0], id, bytes.length).equals(bytes)",
    caughtBy: values('the value of another key is seen'),
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
];
