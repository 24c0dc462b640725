// The report: a Markdown table with a row per step, padded so that it reads well on a terminal, and below it the
// commands that replay what failed.
import { basename } from 'node:path';
import { clock } from '../rerun.mjs';
import { deciding } from './results.mjs';
import { git, short } from './tree.mjs';

const COLUMNS = ['part', 'step', 'verdict', 'when', 'took', 'seed', 'log', 'part last green'];

/** Cells of equal width per column. */
function table(rows) {
  const all = [COLUMNS, ...rows].map((row) => row.map((cell) => String(cell).replaceAll('|', '\\|')));
  const widths = COLUMNS.map((_, i) => Math.max(...all.map((row) => row[i].length)));
  const line = (row) => `| ${row.map((cell, i) => cell.padEnd(widths[i])).join(' | ')} |`;
  const rule = `| ${widths.map((width) => '-'.repeat(width)).join(' | ')} |`;
  return [line(all[0]), rule, ...all.slice(1).map(line)];
}

/**
 * The last commit of this history at which each step of the part passed, as `abc1234, 3 commits ago`: a random one with as
 * many minutes as it has by default.
 */
function lastGreen(root, records, steps) {
  const green = (commit) =>
    steps.every(({ name, minutes = 0 }) => {
      const own = records.filter((one) => one.commit === commit && one.step === name);
      const isLong = (one) => one.verdict === 'passed' && (one.minutes ?? 0) >= minutes;
      return deciding(own)?.verdict === 'passed' && own.some(isLong);
    });
  const candidates = new Set(records.map(({ commit }) => commit));
  const history = (git(root, 'rev-list', 'HEAD') ?? '').trim().split('\n');
  const found = history.find((commit) => candidates.has(commit) && green(commit));
  if (found === undefined) return 'never';
  const ago = Number(git(root, 'rev-list', '--count', `${found}..HEAD`));
  return `${short(found)}, ${ago === 0 ? 'this commit' : ago === 1 ? '1 commit ago' : `${ago} commits ago`}`;
}

/** Steps of the part today, then those that have a result at this commit only: seeds and rows that were chosen then. */
const stepNames = (today, here) => [...new Set([...today.map(({ name }) => name), ...here.map(({ step }) => step)])];

/** The lines of the report. `parts` has entries { part, steps }; `state` is that of the tree (tree.mjs). */
export function report({ root, folder, state, parts, records }) {
  const rows = [];
  const notes = [];
  for (const { part, steps } of parts) {
    const own = records.filter((one) => one.part === part);
    const here = own.filter(({ commit }) => commit === state);
    const green = lastGreen(root, own, steps);
    for (const name of stepNames(steps, here)) {
      const one = deciding(here.filter(({ step }) => step === name));
      if (one === undefined) {
        rows.push([part, name, 'not run', '', '', '', '', green]);
        continue;
      }
      const { verdict, began, seconds, seed, log, why, replay = [] } = one;
      const when = began.slice(0, 16).replace('T', ' ');
      rows.push([
        part,
        name,
        verdict,
        when,
        clock(seconds * 1000),
        seed ?? '',
        log === undefined ? '' : basename(log),
        green,
      ]);
      if (why !== undefined) notes.push(`${part}, ${name}: ${verdict}: ${why}`);
      if (verdict === 'failed' || verdict === 'known')
        notes.push(...replay.map((line) => `${part}, ${name}: replay: ${line}`));
    }
  }
  const dirty = state.includes('+') ? ', with changes that are not committed' : '';
  return [
    `At ${short(state)}${dirty}; logs are in ${folder}; times are UTC.`,
    '',
    ...table(rows),
    ...(notes.length > 0 ? [''] : []),
    ...notes,
  ];
}
