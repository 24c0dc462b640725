/**
 * `npm run bench:instructions`: counts the instructions of the native hot paths under callgrind and compares them with
 * bench/instructions.json. Counts are repeatable where times are not, so a path that grew is seen on any machine,
 * however busy.
 *
 * Exit codes: 0 none grew by over 5 %, or --update; 1 one did, or the counts are of another compiler; 2 what is needed
 * is missing.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import yargs from 'yargs';
import { hideBin } from 'yargs/helpers';
import { inRepository } from '../repository.js';
import { changeLine, compareCounts, parsePaths, perRound, type Kept, type Path } from './counts.js';

const FILE = inRepository('bench/instructions.json');
const RUN_LIMIT_MS = 300_000;

const args = await yargs(hideBin(process.argv))
  .scriptName('npm run bench:instructions --')
  .usage(
    '$0 [options]\n\nInstruction counts of the native hot paths, compared with those in bench/instructions.json. Takes about half a minute',
  )
  .option('update', {
    type: 'boolean',
    default: false,
    describe: 'Write the counts to bench/instructions.json: do so, and say why in the commit, when a path may grow',
  })
  .epilogue('Exit codes: 0 no path grew by over 5 %, 1 one did, 2 a program that is needed is missing or failed')
  .strict()
  .parse();

function fail(text: string): never {
  process.stderr.write(`${text}\n`);
  process.exit(2);
}

function run(program: string, programArgs: readonly string[], debianPackage: string): string {
  const r = spawnSync(program, programArgs, { encoding: 'utf8', timeout: RUN_LIMIT_MS, maxBuffer: 2 ** 26 });
  if (r.error !== undefined && 'code' in r.error && r.error.code === 'ENOENT')
    fail(`${program} is needed and is not installed: apt-get install ${debianPackage}`);
  if (r.status !== 0)
    fail(`${program} ${programArgs.join(' ')} failed: ${r.error?.message ?? ''}\n${r.stdout}${r.stderr}`);
  return r.stdout;
}

/**
 * The compiler's major version and target, and whether there are CRC instructions, which callgrind's processor has
 * where this one has.
 */
function madeWith(): string {
  const major = run('gcc', ['-dumpversion'], 'gcc').trim().split('.')[0] ?? '';
  const target = run('gcc', ['-dumpmachine'], 'gcc').trim();
  const flags = /^(?:flags|Features)\s*:\s*(.*)$/m.exec(readFileSync('/proc/cpuinfo', 'utf8'))?.[1]?.split(' ') ?? [];
  const crc =
    (flags.includes('sse4_2') && flags.includes('pclmulqdq')) || (flags.includes('crc32') && flags.includes('pmull'));
  return `gcc ${major}, ${target}, CRC32C by ${crc ? 'instructions' : 'tables'}`;
}

function build(directory: string): string {
  const native = inRepository('native');
  run('make', ['-s', '-C', native, '../build/native/libfarkv.a', '../build/native/test/libsupport.a'], 'make');
  const program = join(directory, 'driver');
  const archives = ['build/native/test/libsupport.a', 'build/native/libfarkv.a'].map((path) => inRepository(path));
  const options = ['-std=c11', '-fno-strict-aliasing', '-D_GNU_SOURCE', '-O2', '-g', '-Wall', '-Wextra', '-Werror'];
  run(
    'gcc',
    [...options, '-o', program, inRepository('bench/instructions/driver.c'), ...archives, '-pthread', '-ldl', '-lm'],
    'gcc',
  );
  return program;
}

function measure(directory: string, program: string): Record<string, number> {
  const out = join(directory, 'counts');
  const text = run(
    'valgrind',
    ['--quiet', '--tool=callgrind', `--callgrind-out-file=${out}`, '--dump-before=instructions_mark', program],
    'valgrind',
  );
  const paths: Path[] = parsePaths(text);
  const dumps: string[] = [];
  for (let i = 1; existsSync(`${out}.${i}`); i++) dumps.push(readFileSync(`${out}.${i}`, 'utf8'));
  return perRound(paths, dumps);
}

const directory = mkdtempSync(join(tmpdir(), 'farkv-instructions-'));
process.once('exit', () => rmSync(directory, { recursive: true, force: true }));
const kept = existsSync(FILE) ? (JSON.parse(readFileSync(FILE, 'utf8')) as Kept) : undefined;
const now: Kept = { madeWith: madeWith(), counts: measure(directory, build(directory)) };
const changes = compareCounts(kept, now);
process.stdout.write(
  `${'instructions a round'.padEnd(54)}     kept       now    change\n${changes.map(changeLine).join('\n')}\n`,
);
if (args.update) {
  writeFileSync(FILE, `${JSON.stringify(now, undefined, 2)}\n`);
  process.stdout.write('written to bench/instructions.json\n');
} else if (changes.some((c) => c.problem !== undefined)) {
  process.stderr.write(
    'npm run bench:instructions -- --update keeps the counts of now; the commit says why they may be higher\n',
  );
  process.exitCode = 1;
}
