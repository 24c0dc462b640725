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
  row(
    'a piece may be in a list twice',
    LIST,
    'if (ids.size < pieces.length) say(',
    'if (ids.size > pieces.length) say(',
  ),
  row('an acknowledged piece may be missing', LIST, 'if (missing !== undefined) say(', 'if (false) say('),
  row('a piece without effect may be in it', LIST, "c.outcome !== 'no-effect' && c.call", 'c.call'),
  row('two appends may be told one length', LIST, 'if (other !== undefined) violations', 'if (false) violations'),
  row('an increment may count twice', COUNTER, 'if (counted > most) say(', 'if (false) say('),
  row('an acknowledged increment may be missing', COUNTER, 'if (counted < least) say(', 'if (false) say('),
  row('two increments may be told one sum', COUNTER, 'if (told.has(answer.sum)) say(', 'if (false) say('),
  row('a counter may go back', COUNTER, 'if (lower >= 0) violations', 'if (false) violations'),
];
