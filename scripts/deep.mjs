// npm run deep: what .ci/run leaves out, in parts (deep/parts.mjs) that can be run by themselves, interrupted and resumed.
// Each step's result is kept by commit (deep/results.mjs); --report shows them. docs/testing.md says when to run what.
import { randomInt } from 'node:crypto';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { parseArgs } from 'node:util';
import { changedFiles, folderTable, partsFor, usualBase } from './deep/changed.mjs';
import { missing } from './deep/needs.mjs';
import { PARTS, PREPARE } from './deep/parts.mjs';
import { replaysIn } from './deep/replays.mjs';
import { report } from './deep/report.mjs';
import { append, passedBefore, readResults, resultsFolder } from './deep/results.mjs';
import { runStep } from './deep/run-step.mjs';
import { short, stateOf } from './deep/tree.mjs';
import { clock, root } from './rerun.mjs';

const names = Object.keys(PARTS);
const folder = resultsFolder();

const HELP = `npm run deep -- [PART...] [options]

Runs what the short gate, .ci/run, leaves out. Steps that already passed at this commit are skipped, so after Ctrl-C
the same command goes on. A fresh seed that failed counts until the commit
changes. Results are kept in ${folder}.

Parts (default: all)
${names.map((name) => `  ${name.padEnd(14)}${PARTS[name].about}`).join('\n')}

Options
  --changed [BASE]  the parts for the folders that changed since BASE, by the table in docs/testing.md.
                    Default: origin/main, or HEAD~1 without it
  --minutes N       how long each simulator, and the fuzzer, runs with fresh seeds. Default: 6
  --again           run steps that already passed, too
  --report          run nothing; print a table of the results at this commit
  --help            print this

A part that lacks a tool is left out, with what to install; nothing is installed here.
Exit codes: 0 all passed, were left out, or failed by a known open seed; 1 one failed; 2 wrong usage; 130 interrupted`;

function wrongUsage(text) {
  process.stderr.write(`deep: ${text}; --help says more\n`);
  process.exit(2);
}

function parse() {
  const options = {
    changed: { type: 'boolean', default: false },
    minutes: { type: 'string', default: '6' },
    again: { type: 'boolean', default: false },
    report: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  };
  // BASE may be left out, so it is the only positional argument then.
  const args = process.argv.slice(2).flatMap((one) => one.replace(/^--changed=/, '--changed\n').split('\n'));
  try {
    return parseArgs({ args, options, allowPositionals: true });
  } catch (error) {
    return wrongUsage(error.message.split(/\.? To specify|\n/)[0]);
  }
}

const say = (text) => process.stdout.write(`${text}\n`);
const { values, positionals } = parse();
if (values.help) {
  say(HELP);
  process.exit(0);
}
const minutes = Number(values.minutes);
if (!(minutes > 0 && minutes <= 1440)) wrongUsage(`--minutes ${values.minutes}: a number above 0, at most 1440`);
const state = stateOf(root) ?? wrongUsage('this is no git repository with a commit');

/** The parts of this run, and with --changed the files that chose them. */
function choose() {
  if (!values.changed) {
    const unknown = positionals.find((name) => !names.includes(name));
    if (unknown !== undefined) wrongUsage(`there is no part ${unknown}; there are ${names.join(', ')}`);
    return { chosen: positionals.length === 0 ? names : names.filter((name) => positionals.includes(name)) };
  }
  if (positionals.length > 1) wrongUsage('--changed chooses the parts; leave them out, and give one BASE at most');
  const base = positionals[0] ?? usualBase(root);
  const files = changedFiles(root, base) ?? wrongUsage(`${base} has no commit in common with HEAD; give another BASE`);
  const table = folderTable(readFileSync(join(root, 'docs/testing.md'), 'utf8'));
  const chosen = partsFor(files, table, names);
  const list = chosen.length === 0 ? 'no part' : chosen.join(', ');
  say(`${files.length} files changed since ${base}; they ask for ${list}`);
  return { chosen, files };
}

const { chosen, files } = choose();
const parts = chosen.map((part) => ({
  part,
  steps: PARTS[part].steps({ minutes, seed: () => randomInt(1, 2 ** 31), again: values.again, files, folder }),
}));
if (values.report) {
  report({ root, folder, state, parts, records: readResults(folder) }).forEach(say);
  process.exit(0);
}

const interruption = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => interruption.abort());
mkdirSync(folder, { recursive: true });

const quoted = (word) => (/^[\w./:=,@+-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`);
const asTyped = ({ command, env = {} }) =>
  [...Object.entries(env).map(([name, value]) => `${name}=${value}`), ...command].map(quoted).join(' ');

/** A name for a log that no other step and no other run has. */
const logOf = (part, step, began) =>
  join(
    folder,
    [short(state), part, step, began.replaceAll(/[:.]/g, '')].join('-').replaceAll(/[^\w.+-]+/g, '_') + '.log',
  );

/** Runs the step and keeps its result, which is returned. */
async function execute(part, step) {
  const began = new Date();
  const record = {
    commit: state,
    part,
    step: step.name,
    command: asTyped(step),
    seed: step.seed,
    minutes: step.minutes,
  };
  const ends = (more) => {
    const seconds = Math.round((Date.now() - began) / 100) / 10;
    const result = { ...record, began: began.toISOString(), seconds, ...more };
    append(folder, result);
    return result;
  };
  const why = missing(step.needs);
  if (why !== undefined) return ends({ verdict: 'left out', why });
  const log = logOf(part, step.name, began.toISOString());
  say(`${part}, ${step.name}: begins; log ${log}`);
  const verdict = await runStep(step, { root, log, interruption: interruption.signal });
  // Files that changed meanwhile were tested in part: the result belongs to no commit.
  const commit = stateOf(root) === state ? state : `${state}+changed`;
  if (commit !== state) say(`${part}, ${step.name}: files changed meanwhile; the result counts for no commit`);
  const output = readFileSync(log, 'utf8');
  if (verdict === 'failed') {
    const replay = replaysIn(output);
    const failure = { commit, log, replay: replay.length > 0 ? replay : [record.command] };
    return ends(step.known === undefined ? { ...failure, verdict } : { ...failure, verdict: 'known', why: step.known });
  }
  const left = verdict === 'passed' ? step.leftOut?.exec(output)?.[1] : undefined;
  return ends(left === undefined ? { commit, log, verdict } : { commit, log, verdict: 'left out', why: left });
}

const counts = {};
const count = (what) => (counts[what] = (counts[what] ?? 0) + 1);
const failures = [];
const stopped = () => interruption.signal.aborted;

function sayEnd(part, step, { verdict, why, seconds, log, replay = [] }) {
  const name = `${part}, ${step.name}`;
  const reason = why === undefined ? '' : `: ${why}`;
  say(`${name}: ${verdict === 'failed' ? 'FAILED' : verdict} after ${clock(seconds * 1000)}${reason}`);
  if (verdict === 'passed' && step.known !== undefined)
    say(`${name}: no longer fails; move it to test/mended-seeds.json`);
  if (verdict === 'known') replay.forEach((line) => say(`  replay: ${line}`));
  if (verdict === 'failed') failures.push(`FAILED: ${name}; log ${log}`, ...replay.map((line) => `  replay: ${line}`));
}

/** Before the first step that runs: what is stale is built. */
async function prepare() {
  const log = logOf('set-up', 'all', new Date().toISOString());
  const verdict = await runStep({ command: PREPARE }, { root, log, interruption: interruption.signal });
  if (verdict === 'failed') {
    process.stderr.write(`${readFileSync(log, 'utf8')}deep: ${PREPARE.join(' ')} failed\n`);
    process.exit(1);
  }
}

let prepared = false;
for (const { part, steps } of parts) {
  for (const step of steps) {
    if (stopped()) break;
    const before = values.again
      ? undefined
      : passedBefore(readResults(folder), { commit: state, part, step, command: asTyped(step) });
    if (before !== undefined) {
      say(`${part}, ${step.name}: skipped; it passed at ${before.began.slice(0, 16)}Z (--again runs it)`);
      count('skipped');
      continue;
    }
    if (!prepared) await prepare();
    prepared = true;
    if (stopped()) break;
    const result = await execute(part, step);
    count(result.verdict);
    sayEnd(part, step, result);
  }
}
say(
  `deep: ${
    Object.entries(counts)
      .map(([what, times]) => `${times} ${what}`)
      .join(', ') || 'nothing ran'
  }`,
);
failures.forEach(say);
if (stopped()) say('deep: interrupted; the same command goes on after the steps that passed');
process.exit(stopped() ? 130 : failures.length > 0 ? 1 : 0);
