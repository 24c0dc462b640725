/** Where a mutation's text stands. Spaces and line breaks count as one: how a source is formatted does not matter. */

const pattern = (find) => {
  const words = find
    .trim()
    .split(/\s+/)
    .map((word) => word.replace(/[$()*+.?[\\\]^{|}]/g, '\\$&'));
  return new RegExp(words.join('\\s+'), 'g');
};

/** How often it stands there; it must be once. */
export const occurrences = (source, find) => [...source.matchAll(pattern(find))].length;

/** The source with the mutation. A function, since `$` has a meaning in a replacement string. */
export const mutate = (source, { find, replace }) => source.replace(pattern(find), () => replace);
