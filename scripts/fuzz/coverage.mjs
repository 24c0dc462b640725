// What the corpora reach: lines of C, by clang's coverage of a replay; blocks of TypeScript, as V8 counted them in a run.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync } from 'node:fs';
import { join, relative } from 'node:path';
import { growing, kept } from './native.mjs';

const BUILD = 'build/native-coverage';
const FLAGS = '-fprofile-instr-generate -fcoverage-mapping';
/** What hostile peers reach. */
const WATCHED = /^native\/(wire|dataplane|storage|replication|serve|client|fabric\/shm|fabric\/tcp)\//;

function run(command, args, cwd, env = {}) {
  const { status, stdout, stderr } = spawnSync(command, args, {
    cwd,
    env: { ...process.env, ...env },
    encoding: 'utf8',
    maxBuffer: 1 << 28,
  });
  if (status !== 0) throw new Error(`${command} ${args.join(' ')} failed: ${stderr}`);
  return stdout;
}

function replay(root, targets) {
  const program = join(root, BUILD, 'test/fuzz/fuzz_corpus');
  run(
    'make',
    [
      '-s',
      '-C',
      'native',
      `../${BUILD}/test/fuzz/fuzz_corpus`,
      'CC=clang',
      `B=../${BUILD}`,
      `WARN=-w ${FLAGS}`,
      'OPTIMIZE=-O1',
    ],
    root,
  );
  mkdirSync(join(root, BUILD, 'raw'), { recursive: true });
  const raw = targets.flatMap(({ name }) =>
    [kept(name), growing(name)]
      // A target may have found nothing new.
      .filter((folder) => existsSync(join(root, folder)) && readdirSync(join(root, folder)).length > 0)
      .map((folder, i) => {
        const path = join(root, BUILD, 'raw', `${name}-${i}`);
        run(program, [], join(root, 'native'), {
          LLVM_PROFILE_FILE: path,
          FARKV_TEST: name,
          FARKV_FUZZ_CORPUS: join(root, folder),
        });
        return path;
      }),
  );
  const merged = join(root, BUILD, 'merged');
  run('llvm-profdata', ['merge', '-o', merged, ...raw], root);
  return JSON.parse(run('llvm-cov', ['export', '-summary-only', `-instr-profile=${merged}`, program], root));
}

function native(root, targets) {
  if (targets.length === 0) return [];
  return replay(root, targets)
    .data[0].files.map(({ filename, summary }) => ({ path: relative(root, filename), ...summary.lines, of: 'lines' }))
    .filter(({ path }) => WATCHED.test(path));
}

/** Of each file what most of its targets reached: what each reached alone is not added up. */
function best(files) {
  const by = new Map();
  for (const file of files) if (file.covered >= (by.get(file.path)?.covered ?? 0)) by.set(file.path, file);
  return [...by.values()];
}

/** Lines of a table. `results` are those of the run. */
export function coverage(root, targets, results) {
  const files = [
    ...native(
      root,
      targets.filter(({ native: isNative }) => isNative),
    ),
    ...best(results.flatMap((one) => one.files ?? [])),
  ];
  return files
    .sort((a, b) => (a.path < b.path ? -1 : 1))
    .map(
      ({ path, covered, count, of }) =>
        `${path.padEnd(44)} ${covered} of ${count} ${of} (${Math.floor((100 * covered) / count)} %)`,
    );
}
