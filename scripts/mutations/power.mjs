/** What the judge of power cuts must not let pass. */
const known = (title) => ({ test: 'test/power/known.test.ts', title });
const THERE = 'a value that was acknowledged or READ is there afterwards, or a later one';

export const mutations = [
  {
    name: 'power: an older value is as good as the acknowledged one',
    file: 'test/power/known.ts',
    find: '(line.version ?? 0) < least',
    replace: 'line.version === undefined',
    caughtBy: known(THERE),
  },
];
