/** The command line of the comparison. */
import yargs from 'yargs';
import { DOCUMENTS, GOAL_SETS, KEYS, ROWS, type GoalSet } from './rows.js';
import { WORKLOADS } from './rows-ycsb.js';

export interface Options {
  readonly goals: GoalSet;
  readonly keys: number;
  readonly rounds: number;
  readonly servers: number;
  readonly only: RegExp | undefined;
  readonly workloads: readonly string[];
  readonly json: string | undefined;
  readonly report: string | undefined;
  readonly timeLimitMinutes: number;
  readonly writeSeconds: number;
  /** Nothing is measured: the files' figures go into the document of the goals. */
  readonly markdown: readonly string[];
}

const LETTERS = Object.keys(WORKLOADS);

export async function readOptions(args: readonly string[]): Promise<Options> {
  const names = ROWS.map((row) => `  ${row.name.padEnd(28)}${row.work} [${Object.keys(row.measure).join(', ')}]`).join(
    '\n',
  );
  const given = await yargs(args)
    .scriptName('npm run bench:compare --')
    .usage(
      '$0 [options]\n\nfarkv beside Redis, memcached and lmdb on this machine, in one run: ratios with their spread. Nothing is installed.',
    )
    .option('goals', {
      choices: GOAL_SETS,
      default: 'peers' as const,
      describe:
        'peers: ahead of every peer, 1,000,000 keys; main: those of the first version, 100,000 keys; durable: values on the disk of TMPDIR, 100,000 keys',
    })
    .option('keys', {
      type: 'number',
      describe: 'Keys of the GET and PUT rows. Default: those of the goals; fewer are for trying out',
    })
    .option('rounds', { type: 'number', default: 5, describe: 'Rounds of each side, after one to warm up' })
    .option('servers', { type: 'number', default: 1, describe: 'farkv servers' })
    .option('only', { type: 'string', describe: 'Rows whose name or work matches this regular expression' })
    .option('ycsb', { type: 'string', default: LETTERS.join(','), describe: 'Workloads of the ycsb row' })
    .option('write-seconds', {
      type: 'number',
      default: 600,
      describe: 'How long the row durable-write-amplification writes',
    })
    .option('json', {
      type: 'string',
      describe:
        'Write the results to this file: a list of { name, goal, measured, spread, met }, an entry for each row',
    })
    .option('report', {
      type: 'string',
      describe: 'Write a page with latency curves and bars to this file (HTML, self-contained)',
    })
    .option('markdown', {
      type: 'string',
      array: true,
      describe: `Measure nothing: write the figures of these --json files into the document of the goals (${Object.values(DOCUMENTS).join(', ')}); of a row that is in several the last one's`,
    })
    .option('time-limit', {
      type: 'number',
      default: 90,
      describe: 'Minutes after which what is left is not measured; a row under way is ended',
    })
    .example('$0 --only "shm-get" --report /tmp/farkv.html', 'GETs over shm, and a page')
    .example('$0 --keys 20000 --rounds 2', 'does everything work? A trial: the figures mean nothing')
    .example('$0 --markdown rows.json', 'puts the figures into bench/README.md')
    .check(({ keys = 10_000, rounds, servers, 'time-limit': timeLimit, 'write-seconds': write }) => {
      const whole = (value: number, low: number, high: number): boolean =>
        Number.isInteger(value) && value >= low && value <= high;
      if (!whole(keys, 5000, 10_000_000)) throw new Error('--keys: 5000 to 10000000');
      if (!whole(rounds, 1, 100) || !whole(servers, 1, 9)) throw new Error('--rounds: 1 to 100; --servers: 1 to 9');
      if (!(timeLimit > 0 && timeLimit <= 1440)) throw new Error('--time-limit: up to 1440 minutes');
      if (!whole(write, 1, 86_400)) throw new Error('--write-seconds: 1 to 86400');
      return true;
    })
    .epilogue(
      `A whole run takes about 40 minutes on two cores that do nothing else, and at most the time limit and two minutes: then rows that are left are told as not measured. Both files are written after each row.\n\nRows, with the sets of goals that have them:\n${names}`,
    )
    .wrap(130)
    .strict()
    .parse();
  const workloads = given.ycsb
    .toLowerCase()
    .split(',')
    .filter((w) => w !== '');
  const wrong = workloads.find((w) => !LETTERS.includes(w));
  if (wrong !== undefined) throw new Error(`--ycsb: ${wrong} is none of ${LETTERS.join(', ')}`);
  return {
    goals: given.goals,
    keys: given.keys ?? KEYS[given.goals],
    rounds: given.rounds,
    servers: given.servers,
    only: given.only === undefined ? undefined : new RegExp(given.only, 'i'),
    workloads,
    json: given.json,
    report: given.report,
    timeLimitMinutes: given['time-limit'],
    writeSeconds: given['write-seconds'],
    markdown: given.markdown ?? [],
  };
}
