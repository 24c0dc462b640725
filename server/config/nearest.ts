/** The known name that somebody who wrote an unknown one probably meant. */

/** Edits (insert, delete, replace, swap neighbours) from one word to the other. */
export function editDistance(a: string, b: string): number {
  let before: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1];
      let cost = Math.min((last[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, (last[j - 1] ?? 0) + (same ? 0 : 1));
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) cost = Math.min(cost, (before[j - 2] ?? 0) + 1);
      row.push(cost);
    }
    before = last;
    last = row;
  }
  return last[b.length] ?? 0;
}

const plain = (name: string): string => name.toLowerCase().replace(/[-_]/g, '');

/** Undefined when nothing is near: more than a third of the letters, and more than two, would have to change. */
export function nearest(name: string, known: readonly string[]): string | undefined {
  let best: string | undefined;
  let least = Math.max(2, Math.ceil(name.length / 3)) + 1;
  for (const candidate of known) {
    const distance = editDistance(plain(name), plain(candidate));
    if (distance < least) {
      best = candidate;
      least = distance;
    }
  }
  return best;
}

/** "unknown option --memroy; did you mean --memory?" */
export function unknownName(what: string, name: string, known: readonly string[], prefix = ''): string {
  const near = nearest(name, known);
  return `unknown ${what} ${prefix}${name}${near === undefined ? '' : `; did you mean ${prefix}${near}?`}`;
}
