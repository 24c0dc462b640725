/** What the judge of power cuts must not let pass. */
const known = (title) => ({ test: 'test/power/known.test.ts', title });
const THERE = 'a value that was acknowledged or READ is there afterwards, or a later one';

export const mutations = [
  {
    name: 'power: a value that was READ and not acknowledged may be lost',
    file: 'test/power/known.ts',
    find: '        this.read++;\n        this.#raise(line.key, line.version);',
    replace: '        this.read++;',
    caughtBy: known(THERE),
  },
  {
    name: 'power: an older value is as good as the acknowledged one',
    file: 'test/power/known.ts',
    find: '(line.version ?? 0) < least',
    replace: 'line.version === undefined',
    caughtBy: known(THERE),
  },
  {
    name: 'power: what was there after one cut may be gone after the next',
    file: 'test/power/known.ts',
    find: 'if (line.version !== undefined) this.#least.set(line.key, line.version);',
    replace: '',
    caughtBy: known(THERE),
  },
  {
    name: 'power: a line that the cut ended early is believed',
    file: 'test/power/known.ts',
    find: "text.startsWith('{') && text.endsWith(END)",
    replace: "text.startsWith('{') && text.endsWith('}')",
    caughtBy: known('a line that was cut off says nothing'),
  },
];
