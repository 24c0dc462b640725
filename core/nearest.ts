/** Names that nobody knows, and the known ones that were probably meant. Pure. */

/** What to say: "unknown option --memroy; did you mean --memory?" `prefix` stands before both names. */
export function unknownName(what: string, name: string, known: Iterable<string>, prefix = ''): string {
  const near = nearest(name, known);
  return `unknown ${what} ${prefix}${name}${near === undefined ? '' : `; did you mean ${prefix}${near}?`}`;
}

/**
 * The known name that a misspelt one most likely meant: the least edit distance, where that is at most a third of the
 * name.
 */
export function nearest(name: string, known: Iterable<string>): string | undefined {
  let best: string | undefined;
  let least = Math.floor(name.length / 3) + 1;
  for (const candidate of known) {
    const distance = editDistance(name.toLowerCase(), candidate.toLowerCase());
    if (distance < least) {
      least = distance;
      best = candidate;
    }
  }
  return best;
}

/** Levenshtein's distance, one row at a time. */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
