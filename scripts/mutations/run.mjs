/**
 * Mutation checks: each mutation takes one safety mechanism out of the sources, and the test that is named with it, which
 * passes without, must then fail, on an assertion and not for another reason. Prints a table: name, caught by which test; below it, again,
 * the mutations that survived, for a log may be cut at its beginning. Exits with 1 if a mutation survives.
 *
 *   node scripts/mutations/run.mjs [part of a name] [--files A,B]
 *
 * After a build (npm run setup): what is not mutated is taken from dist/. With --files only the rows that changes of these
 * files may concern (checks/chosen.mjs), of which there may be none.
 *
 * Lists of mutations are the other files of this folder. A row of a list is
 *   name: [operator, caughtBy]
 *   name      the marker in the sources, a comment "mutation: list/name", says where (checks/markers.mjs)
 *   operator  what is done to the code there, TypeScript or C (checks/operators.mjs)
 *   caughtBy  { test: 'path/x.test.ts', title: 'the test that must fail' },
 *             { simulation: /what must be reported as violated/, seeds, steps, application }, or for C
 *             { program: 'x', test: 'the function of x_test.c in native/test that must fail', sanitizer: 'thread',
 *               runs: with how many seeds at the most, for what depends on when threads run }
 */
import { performance } from 'node:perf_hooks';
import {
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import typescript from 'typescript';
import { concerns } from './checks/chosen.mjs';
import { NativeTree } from './checks/native.mjs';
import { endAll, run } from './checks/process.mjs';
import { allMarkers, mutate } from './checks/markers.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const root = resolve(here, '../..');
async function lists() {
  const fileOf = new Map(allMarkers(root).map(({ name, file }) => [name, file]));
  const files = readdirSync(here).filter((name) => name.endsWith('.mjs') && name !== 'run.mjs');
  const modules = await Promise.all(files.map((name) => import(join(here, name))));
  return modules.flatMap(({ mutations }, i) =>
    mutations.map((row) => ({ ...row, file: fileOf.get(row.name), list: `scripts/mutations/${files[i]}` })),
  );
}

/** Folders of this run, which an interruption removes. */
const folders = new Set();
for (const signal of ['SIGINT', 'SIGTERM']) {
  process.once(signal, () => {
    endAll();
    for (const folder of folders) rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
    process.exit(130);
  });
}

function asked() {
  try {
    const { values, positionals } = parseArgs({ options: { files: { type: 'string' } }, allowPositionals: true });
    return { part: positionals[0] ?? '', files: values.files?.split(',').filter((file) => file !== '') };
  } catch (error) {
    process.stderr.write(`mutations: ${error.message.split('. ')[0]}; there are [part of a name] and --files A,B\n`);
    return process.exit(2);
  }
}

/** A copy of the compiled project in which one file is mutated. */
function mutated(mutation) {
  const { file } = mutation;
  const source = readFileSync(join(root, file), 'utf8');
  const directory = mkdtempSync(join(tmpdir(), 'farkv-mutation-'));
  folders.add(directory);
  // Of dist/, what runs: types and source maps are most of it.
  const filter = (path) => !/\.(d\.ts|map|tsbuildinfo)$/.test(path);
  for (const part of [
    'dist',
    'package.json',
    'ava.config.js',
    'server/http/page',
    'test/sim/traces',
    'test/fuzz/corpus',
  ])
    cpSync(join(root, part), join(directory, part), { recursive: true, filter });
  for (const part of ['node_modules', 'build', 'prebuilds'])
    if (existsSync(join(root, part))) symlinkSync(join(root, part), join(directory, part));
  const compilerOptions = {
    target: typescript.ScriptTarget.ES2023,
    module: typescript.ModuleKind.ESNext,
    verbatimModuleSyntax: true,
  };
  const { outputText } = typescript.transpileModule(mutate(source, mutation), { compilerOptions, fileName: file });
  writeFileSync(join(directory, 'dist', file.replace(/\.ts$/, '.js')), outputText);
  return directory;
}

/** One seed for all: whether a mutation is caught is to be the same on each run. Fresh seeds are the tests' own runs' business. */
const runNode = (args, directory) => run(process.execPath, args, directory, { FARKV_SEED: '20240229' });

const commandOf = ({ simulation, from = 1, seeds = 40, steps = 10_000, application = 'hashes', test, title }) =>
  simulation !== undefined
    ? [
        ...['dist/test/sim/main.js', '--from', String(from), '--seeds', String(seeds)],
        ...['--steps', String(steps), '--application', application],
      ]
    : ['node_modules/ava/entrypoints/cli.mjs', '--tap', '--match', title, `dist/${test.replace(/\.ts$/, '.js')}`];

/** By command: why what it runs catches nothing, since it fails as the sources are; undefined where it passes. */
const proofs = new Map();
async function fault(caughtBy) {
  const command = commandOf(caughtBy);
  const key = command.join(' ');
  if (!proofs.has(key))
    proofs.set(
      key,
      runNode(command, root).then(({ code }) => (code === 0 ? undefined : 'it fails without the mutation, too')),
    );
  return await proofs.get(key);
}

/** What caught it, or undefined with the reason why it does not count. */
async function check(mutation) {
  const { caughtBy } = mutation;
  const why = await fault(caughtBy);
  if (why !== undefined) return { why };
  const directory = mutated(mutation);
  try {
    const { code, late, output } = await runNode(commandOf(caughtBy), directory);
    if (late) return { why: 'ran for too long' };
    if (caughtBy.simulation !== undefined) {
      const violated = /^seed (\d+): (.*)$/m.exec(output);
      if (code === 1 && violated !== null && caughtBy.simulation.test(violated[2]))
        return { caught: `seed ${violated[1]}, ${violated[2].slice(0, 90)}` };
      return { why: violated === null ? `no violation (exit ${code})` : `another failure: ${violated[2]}` };
    }
    const failed = output
      .split(/^(?=not ok|ok)/m)
      .find((part) => part.startsWith('not ok') && part.includes(caughtBy.title));
    if (code === 1 && failed !== undefined && /name: AssertionError/.test(failed)) return { caught: caughtBy.title };
    return { why: failed === undefined ? `the test passes (exit ${code})` : 'the test fails, but not on an assertion' };
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

/** Why the mutation has no place in the sources; undefined when it has one. */
function misplaced(mutation) {
  const { file, name } = mutation;
  if (file === undefined) return { why: `no marker "mutation: ${name}" is in the sources` };
  try {
    mutate(readFileSync(join(root, file), 'utf8'), mutation);
    return undefined;
  } catch (error) {
    return { why: `its operator does not apply in ${file}: ${error.message}` };
  }
}

/** The rows of the table that are printed again below it. */
const survivors = [];
async function report(mutation, checked) {
  const began = performance.now();
  const { caught, why } = misplaced(mutation) ?? (await checked());
  const seconds = ((performance.now() - began) / 1000).toFixed(1).padStart(5);
  const row = `${caught === undefined ? 'SURVIVED' : 'caught  '} ${seconds} s  ${mutation.name.padEnd(44)} ${caught ?? why}`;
  if (caught === undefined) survivors.push(row);
  console.log(row);
}

/**
 * Those of C, in two trees at once. What is mutated in one file is checked in one tree, so that a file is compiled once
 * for each mutation; so is what needs a sanitizer, which has objects of its own.
 */
async function checkNative(chosen) {
  const groups = new Map();
  for (const mutation of chosen) {
    const key = mutation.caughtBy.sanitizer ?? mutation.file;
    groups.set(key, [...(groups.get(key) ?? []), mutation]);
  }
  const waiting = [...groups.values()].sort(
    (a, b) =>
      Number(b[0].caughtBy.sanitizer !== undefined) - Number(a[0].caughtBy.sanitizer !== undefined) ||
      b.length - a.length,
  );
  const trees = waiting.slice(0, 2).map(() => new NativeTree(root));
  for (const { at } of trees) folders.add(at);
  try {
    await Promise.all(
      trees.map(async (tree) => {
        for (let group = waiting.shift(); group !== undefined; group = waiting.shift())
          for (const mutation of group) await report(mutation, () => tree.check(mutation));
      }),
    );
  } finally {
    for (const tree of trees) tree.remove();
  }
}

/** Those of TypeScript, two at a time: each has a copy of the project for itself. */
async function checkCompiled(chosen) {
  const queue = chosen.values();
  const lane = async () => {
    for (const mutation of queue) await report(mutation, () => check(mutation));
  };
  await Promise.all([lane(), lane()]);
}

const { part, files } = asked();
const chosen = (await lists()).filter(
  (mutation) => mutation.name.includes(part) && (files === undefined || concerns(mutation, files)),
);
const native = chosen.filter(({ caughtBy }) => caughtBy.program !== undefined);
if (native.length > 0) await checkNative(native);
await checkCompiled(chosen.filter(({ caughtBy }) => caughtBy.program === undefined));
console.log(`${chosen.length - survivors.length} of ${chosen.length} mutations caught`);
for (const row of survivors) console.log(row);
process.exitCode = survivors.length === 0 && (chosen.length > 0 || files !== undefined) ? 0 : 1;
