// The results of all runs, in a folder of the user's cache: results.jsonl has one line of JSON per ended step, and a log
// beside it has the step's output. Lines are only ever appended, so an interruption loses none.
//
//   { commit, part, step, command, seed?, minutes?, began, seconds, verdict, why?, replay?, log? }
//   commit    the state of the tree (tree.mjs)
//   verdict   passed, failed, interrupted, left out; known: an open seed that failed, as expected
//   why       what is missing, of a step that was left out; what a known seed finds
//   replay    commands that show a failure again
import { appendFileSync, existsSync, mkdirSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';

/** `$XDG_CACHE_HOME/farkv/deep`, else under `~/.cache`. */
export function resultsFolder(env = process.env) {
  const cache = env.XDG_CACHE_HOME;
  return join(cache === undefined || cache === '' ? join(homedir(), '.cache') : cache, 'farkv', 'deep');
}

const fileOf = (folder) => join(folder, 'results.jsonl');

export function append(folder, record) {
  mkdirSync(folder, { recursive: true });
  const file = fileOf(folder);
  // A machine that stopped may have left half a line.
  const torn = existsSync(file) && !/(^|\n)$/.test(readFileSync(file, 'utf8'));
  appendFileSync(file, `${torn ? '\n' : ''}${JSON.stringify(record)}\n`);
}

/** All records, the oldest first; half a line is left out. */
export function readResults(folder) {
  if (!existsSync(fileOf(folder))) return [];
  return readFileSync(fileOf(folder), 'utf8')
    .split('\n')
    .flatMap((line) => {
      try {
        return line === '' ? [] : [JSON.parse(line)];
      } catch {
        return [];
      }
    });
}

/**
 * The record that decides a step at one commit, of the step's records there. A fresh seed that failed does so until the
 * commit changes: another seed that passes says nothing about it. Otherwise the last end counts.
 */
export function deciding(records) {
  const ended = records.filter(({ verdict }) => ['passed', 'failed', 'known'].includes(verdict));
  return (
    ended.findLast(({ verdict, seed }) => verdict === 'failed' && seed !== undefined) ?? ended.at(-1) ?? records.at(-1)
  );
}

/**
 * The record by which the step has already passed at this commit. A step with a seed has other words each time, and
 * counts if it ran for as many minutes at least; any other step must have been the same command.
 */
export function passedBefore(records, { commit, part, step, command }) {
  const own = records.filter((one) => one.commit === commit && one.part === part && one.step === step.name);
  const same = own.filter((one) =>
    step.seed === undefined ? one.command === command : (one.minutes ?? 0) >= (step.minutes ?? 0),
  );
  return deciding(own)?.verdict === 'failed' ? undefined : same.findLast(({ verdict }) => verdict === 'passed');
}
