/** What the check of lists and counters must not let pass (test/chaos/tails.ts). */
const tails = (title) => ({ test: 'test/chaos/tails.test.ts', title });
const LIST = 'what a list cannot be is found';
const COUNTER = 'what a counter cannot be is found';
const row = (name, title, find, replace) => ({
  name: `tails: ${name}`,
  file: 'test/chaos/tails.ts',
  find,
  replace,
  caughtBy: tails(title),
});

export const mutations = [
  row('an acknowledged piece may be missing', LIST, 'if (missing !== undefined) say(', 'if (false) say('),
  row('an acknowledged increment may be missing', COUNTER, 'if (counted < least) say(', 'if (false) say('),
];
