/** How the lists of mutations are written. */

/** The C test that must fail, as in `const table = by('table')`, then `table('the name of the test')`. */
export const by = (program) => (test, more) => ({ program, test, ...more });

/** The rows of a list, each `name: [operator, caughtBy]`; its marker in the sources is "mutation: list/name". */
export const rows = (list, table) =>
  Object.entries(table).map(([name, [operator, caughtBy]]) => ({ name: `${list}/${name}`, operator, caughtBy }));
