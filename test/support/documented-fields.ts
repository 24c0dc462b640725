/** Which fields of a JSON document the tables of a page describe. */

/** Of a table: what its first cell names, and what else it says. */
export interface Row {
  readonly paths: readonly string[];
  readonly names: readonly string[];
}

const namesIn = (text: string): string[] => [...text.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name);
/** Without what says that it is a list. */
const bare = (name: string): string => name.replace(/\[i?\]$/, '');

/** In a first cell of names alone a name without a path lies beside the name before. */
export function documented(markdown: string): Row[] {
  return [...markdown.matchAll(/^\|([^|]*)\|(.*)$/gm)].map(([, cell = '', rest = '']) => {
    if (!cell.startsWith(' `')) return { paths: [], names: namesIn(cell + rest).map(bare) };
    let within = '';
    const paths = namesIn(cell).map((name) => {
      const path = name.includes('.') ? name : within + name;
      within = path.slice(0, path.lastIndexOf('.') + 1);
      return bare(path);
    });
    return { paths, names: namesIn(rest).map(bare) };
  });
}

/** Of each field that has no others in it. `byName`: paths of objects whose names are no fields. */
export function pathsOf(value: unknown, byName: RegExp, path = ''): string[] {
  const within = Array.isArray(value)
    ? value.map((one) => [`${path}[]`, one] as const)
    : typeof value === 'object' && value !== null && !byName.test(path)
      ? Object.entries(value).map(([name, one]) => [path === '' ? name : `${path}.${name}`, one] as const)
      : [];
  return within.length === 0 ? [bare(path)] : [...new Set(within.flatMap(([at, one]) => pathsOf(one, byName, at)))];
}

const isOrEndsWith = (path: string, end: string): boolean =>
  path === end || (end.includes('.') && path.endsWith(`.${end}`));

/** By a name of its own, with the end of its path (`log.bytes`); or the row of what it is in names it. */
export function isDocumented(rows: readonly Row[], path: string): boolean {
  const parts = path.split('.');
  return rows.some(
    ({ paths, names }) =>
      names.some((one) => one.includes('.') && isOrEndsWith(path, one)) ||
      parts.some((_, i) => {
        const above = bare(parts.slice(0, i + 1).join('.'));
        const below = parts.slice(i + 1).map(bare);
        return paths.some((one) => isOrEndsWith(above, one)) && below.every((name) => names.includes(name));
      }),
  );
}
