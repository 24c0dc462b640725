/** How the lists of mutations of C are written. */

/** The C test that must fail, as in `const table = by('table')`, then `table('the name of the test')`. */
export const by = (program) => (test, more) => ({ program, test, ...more });

/** Mutations of one file, each written as [name, caughtBy, find, replace]. */
export const inFile = (file, rows) =>
  rows.map(([name, caughtBy, find, replace]) => ({ name, file, find, replace, caughtBy }));
