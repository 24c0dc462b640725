/** Names that nobody knows, and the known ones that were probably meant. Pure. */

/** What to say: "unknown option --memroy; did you mean --memory?" `prefix` stands before both names. */
export function unknownName(what: string, name: string, known: Iterable<string>, prefix = ''): string {
  const near = nearest(name, known);
  return `unknown ${what} ${prefix}${name}${near === undefined ? '' : `; did you mean ${prefix}${near}?`}`;
}

/** What other programs call it: the first of these names that is known is meant. */
const ELSEWHERE: Readonly<Record<string, readonly string[]>> = {
  host: ['servers'],
  hosts: ['servers'],
  url: ['servers'],
  port: ['servers'],
  nodes: ['servers'],
  endpoints: ['servers'],
  address: ['servers'],
  password: ['token'],
  db: ['namespace'],
  database: ['namespace'],
  ex: ['ttlMs'],
  px: ['ttlMs'],
  expiry: ['ttlMs'],
  expires: ['ttlMs'],
};

/**
 * The known name that a misspelt one most likely meant: one that it is the beginning of (`ttl`: `ttlMs`), or what other
 * programs call so, or the least edit distance, where that is at most a third of the name.
 */
export function nearest(name: string, known: Iterable<string>): string | undefined {
  const names = [...known];
  const small = name.toLowerCase();
  const elsewhere = Object.hasOwn(ELSEWHERE, small) ? ELSEWHERE[small] : undefined;
  const meant =
    elsewhere?.find((one) => names.includes(one)) ??
    (small.length < 3 ? undefined : names.find((one) => one.toLowerCase().startsWith(small)));
  if (meant !== undefined) return meant;
  let best: string | undefined;
  let least = Math.floor(name.length / 3) + 1;
  for (const candidate of names) {
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
