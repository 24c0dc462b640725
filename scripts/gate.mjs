// What .ci/run does here, after the README's commands passed in a bare root: the parts below, two lanes at a time, each to
// its end. What fails of the tests runs once more, alone, when all the rest has ended (rerun.mjs). Everything in it says
// the same of the same code: nothing is random, and nothing is timed.
//
//   node scripts/gate.mjs [PART...]     default: all parts
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { avaTests, clock, cTests, root, run, runAgain, sayUnstable } from './rerun.mjs';

/** What users do with a cluster, with real processes; longer than what npm test has of it. */
const PROCESSES = ['copies', 'handover', 'durable', 'backup', 'secrets', 'http'].map(
  (name) => `dist/test/integration/${name}.long.test.js`,
);

/** What an ordinary user cannot set up, and npm test leaves out in the bare root. */
const AS_ROOT = ['test/integration/first-process', 'server/data-directory', 'net/private-directory'].map(
  (name) => `dist/${name}.test.js`,
);

/** Fixed histories of each application of the simulator, and those that once were wrong. */
const APPLICATIONS = ['hashes', 'metadata', 'owners', 'replicas', 'copies'];
const SEEDS = ['--from', '1001', '--seeds', '10', '--steps', '20000'];
const mended = JSON.parse(readFileSync(join(root, 'test/mended-seeds.json'), 'utf8'));

const node = (args, line) => run(process.execPath, args, line);
const all = async (steps) => {
  for (const step of steps) if (!(await step())) return 'failed';
  return 'passed';
};

const PARTS = {
  async native(line) {
    // The short C tests under sanitizers; one lane of the two waits for its processes most of the time.
    return await cTests(['-j2', 'SAN=address,undefined', 'test-short'], line);
  },
  async addon(line) {
    return (await run('bash', ['scripts/sanitize-addon.sh'], line)) ? 'passed' : 'failed';
  },
  async processes(line) {
    return await avaTests([...PROCESSES, ...AS_ROOT], line, 1);
  },
  async seeds(line) {
    // A report of each run would say nothing that is of interest when it passed.
    const quietly = async (command, args) => {
      const lines = [];
      const passed = await run(command, args, (text) => lines.push(text));
      line(`${passed ? 'ok' : 'FAILED'} ${command === process.execPath ? '' : `${command} `}${args.join(' ')}`);
      if (!passed) lines.forEach(line);
      return passed;
    };
    const sim = (args) => () => quietly(process.execPath, ['dist/test/sim/main.js', ...args]);
    const c =
      ({ program, seed }) =>
      () =>
        quietly('env', [`FARKV_SEED=${seed}`, 'make', '-s', '-C', 'native', `ONLY=${program}`, 'test']);
    return await all([
      ...APPLICATIONS.map((application) => sim([...SEEDS, '--application', application])),
      ...mended.simulator.map(({ application, seed, steps }) =>
        sim(['--seed', String(seed), '--steps', String(steps), '--application', application]),
      ),
      ...mended.c.map(c),
    ]);
  },
  async lint(line) {
    return await all([
      () => node(['node_modules/prettier/bin/prettier.cjs', '--check', '--log-level', 'warn', '.'], line),
      () => node(['node_modules/eslint/bin/eslint.js', '.', '--max-warnings', '0'], line),
    ]);
  },
  async package(line) {
    return (await run('bash', ['scripts/check-package.sh'], line)) ? 'passed' : 'failed';
  },
};
/** The second one has what starts processes: two at a time would have each other's load. */
const LANES = [
  ['native', 'addon'],
  ['processes', 'seeds', 'lint', 'package'],
];

const begun = Date.now();
const say = (text) => process.stdout.write(`${clock(Date.now() - begun).padStart(5)}  ${text}\n`);
const chosen = process.argv.slice(2);
const unknown = chosen.find((name) => !(name in PARTS));
if (unknown !== undefined) {
  process.stderr.write(`gate: there is no part ${unknown}; there are ${Object.keys(PARTS).join('; ')}\n`);
  process.exit(2);
}
if (spawnSync(process.execPath, ['scripts/setup.mjs'], { cwd: root, stdio: 'inherit' }).status !== 0) process.exit(1);

const failed = [];
const lane = async (names) => {
  for (const name of names.filter((one) => chosen.length === 0 || chosen.includes(one))) {
    const from = Date.now();
    say(`${name}: begins`);
    const lines = [];
    const verdict = await PARTS[name]((text) => lines.push(text));
    if (verdict === 'failed') failed.push(name);
    // Whole, after its end: lanes would mix.
    process.stdout.write(lines.map((text) => `       ${text}\n`).join(''));
    say(`${name}: ${verdict} after ${clock(Date.now() - from)}`);
  }
};
await Promise.all(LANES.map(lane));
if (!(await runAgain(say))) failed.push('what ran once more');
say(failed.length === 0 ? 'all passed' : `FAILED: ${failed.join(', ')}`);
sayUnstable();
process.exit(failed.length === 0 ? 0 : 1);
