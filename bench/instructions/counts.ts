/**
 * Instruction counts of the native hot paths: read from what callgrind wrote, and compared with those that are kept.
 * Pure.
 *
 * Counted are the instructions of this project's own C files, each function's own without what it calls: which memcpy
 * libc picks depends on the machine, and what the puppet of the tests does is no part of a path.
 */
import { posix } from 'node:path';

export interface Path {
  readonly name: string;
  /** Of the shorter of the two runs; the longer one has twice as many. */
  readonly rounds: number;
  /** Folders of native/ that count. */
  readonly folders: readonly string[];
}

/** What bench/instructions.json holds. */
export interface Kept {
  /** Compiler and processor that the counts are of; those of others are not comparable. */
  readonly madeWith: string;
  /** Instructions a round, by path. */
  readonly counts: Readonly<Record<string, number>>;
}

export interface Change {
  readonly name: string;
  /** undefined: new. */
  readonly before: number | undefined;
  /** undefined: gone. */
  readonly now: number | undefined;
  /** Why the file must be updated before the check passes; undefined: it need not be. */
  readonly problem: string | undefined;
}

/** A path that grows by more is a failure. */
export const LIMIT_PERCENT = 5;

/** The driver's list: name, rounds, folders, separated by tabs, a line each. */
export function parsePaths(text: string): Path[] {
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => {
      const [name = '', rounds, folders = ''] = line.split('\t');
      return { name, rounds: Number(rounds), folders: folders.split(',') };
    });
}

/**
 * The path in native/, or '' of a file elsewhere; `client/../table/reader.h`, as a compiler names an included file, is
 * `table/reader.h`.
 */
const inNative = (path: string): string =>
  path.includes('/native/') ? posix.normalize(path.slice(path.lastIndexOf('/native/') + 8)) : '';

/**
 * Instructions of the functions' own in files of these folders of native/ and the folders in them. The format is
 * callgrind's: `fl=` begins a function, `fi=` and `fe=` go to inlined code and back, `cfi=` and `cfl=` name the file of
 * what is called, each as `(number) name` or as a number that was named before; the line after `calls=` is what that
 * cost.
 */
export function countOwn(dump: string, folders: readonly string[]): number {
  const wanted = new RegExp(`^(?:${folders.join('|')})/.+\\.[ch]$`);
  const names = new Map<string, string>();
  let counts = false;
  let called = false;
  let sum = 0;
  for (const line of dump.split('\n')) {
    const file = /^(c?)f[lie]=(\(\d+\))(?: (.*))?/.exec(line);
    if (file !== null) {
      const [, ofCalled = '', number = '', name] = file;
      if (name !== undefined) names.set(number, inNative(name));
      if (ofCalled === '') counts = wanted.test(names.get(number) ?? '');
    } else if (line.startsWith('calls=')) {
      called = true;
    } else if (/^[\d+*-]/.test(line)) {
      if (counts && !called) sum += Number(line.split(' ')[1]);
      called = false;
    }
  }
  return sum;
}

/**
 * The counts a round, from the dumps in the order of their numbers: before a case, its N rounds, its 2 N rounds, and
 * again.
 */
export function perRound(paths: readonly Path[], dumps: readonly string[]): Record<string, number> {
  if (dumps.length < 3 * paths.length) throw new Error(`${dumps.length} dumps of ${paths.length} paths`);
  return Object.fromEntries(
    paths.map(({ name, rounds, folders }, i) => {
      const once = countOwn(dumps[3 * i + 1] ?? '', folders);
      const twice = countOwn(dumps[3 * i + 2] ?? '', folders);
      if (twice <= once)
        throw new Error(`${name}: ${twice} instructions in ${2 * rounds} rounds, ${once} in ${rounds}`);
      return [name, Math.round((10 * (twice - once)) / rounds) / 10];
    }),
  );
}

export function compareCounts(kept: Kept | undefined, now: Kept): Change[] {
  const comparable = kept?.madeWith === now.madeWith;
  const names = new Set([...Object.keys(kept?.counts ?? {}), ...Object.keys(now.counts)]);
  return [...names].map((name) => {
    const before = kept?.counts[name];
    const count = now.counts[name];
    const problem = (): string | undefined => {
      if (kept !== undefined && !comparable) return `the counts kept are of ${kept.madeWith}, not ${now.madeWith}`;
      if (before === undefined) return 'no count is kept';
      if (count === undefined) return 'it is no longer measured';
      return count > before * (1 + LIMIT_PERCENT / 100) ? `it grew by over ${LIMIT_PERCENT} %` : undefined;
    };
    return { name, before, now: count, problem: problem() };
  });
}

export function changeLine({ name, before, now, problem }: Change): string {
  const percent =
    before !== undefined && now !== undefined
      ? `${now >= before ? '+' : ''}${((100 * now) / before - 100).toFixed(1)} %`
      : '';
  const figures =
    `${(before ?? Number.NaN).toFixed(1).padStart(9)} ${(now ?? Number.NaN).toFixed(1).padStart(9)} ${percent.padStart(9)}`.replaceAll(
      'NaN',
      '  -',
    );
  return `${name.padEnd(54)}${figures}${problem === undefined ? '' : `   ${problem}`}`;
}
