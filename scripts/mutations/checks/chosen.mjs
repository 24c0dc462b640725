/** Which rows a change concerns. */

/**
 * Whether a change of these files may concern the row: the file that is mutated is among them, its test is, the list that
 * has the row, or, where the simulator catches it, any file of the simulator. Paths are those of the repository.
 */
export function concerns({ file, list, caughtBy }, files) {
  const { test, program, simulation } = caughtBy;
  const catches = (path) =>
    path === test ||
    (program !== undefined && path.startsWith('native/test/') && path.endsWith(`/${program}_test.c`)) ||
    (simulation !== undefined && path.startsWith('test/sim/'));
  return files.some((path) => path === file || path === list || catches(path));
}
