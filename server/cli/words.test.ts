import test from 'ava';
import { allCommands } from './command-list.js';
import { definitionOf } from './manual/definition.js';
import { prepareWords } from './words.js';

const FLAGS = [{ name: 'dry-run' }, { name: 'verbose', alias: 'v' }, { name: 's' }];
const prepare = (...typed: string[]) => prepareWords(typed, FLAGS, true);

test('a flag is true or false however it is spelled', (t) => {
  for (const [typed, words] of [
    ['--dry-run', ['--dry-run=true']],
    ['--dryRun', ['--dry-run=true']],
    ['--dry-run=1', ['--dry-run=true']],
    ['--dryRun=0', ['--dry-run=false']],
    ['--dry-run=false', ['--dry-run=false']],
    ['-v', ['--verbose=true']],
    ['-v=0', ['--verbose=false']],
    ['-v1', ['--verbose=true']],
    ['-vs', ['--verbose=true', '--s=true']],
    ['-vn7', ['--verbose=true', '-n7']],
    ['-h', ['--help=true']],
    ['--version', ['--version=true']],
  ] as const)
    t.deepEqual(prepare(typed).words, words, typed);
});

test('options with values, numbers and arguments stay as they are', (t) => {
  const words = ['put', 'k', '--connect=yes', '--no-dry-run', '-n7', '-nv', '-5', '', 'true', '--dry-runs=yes'];
  t.deepEqual(prepare(...words).words, words);
  t.deepEqual(prepare('put', 'f', '--verbose', 'true').words, ['put', 'f', '--verbose=true', 'true']);
});

test('a value of a flag that is neither true nor false is refused', (t) => {
  for (const [typed, message] of [
    ['--dry-run=yes', '--dry-run: "yes" is neither true nor false'],
    ['--dryRun=no', '--dryRun: "no" is neither true nor false'],
    ['--dry-run=', '--dry-run: "" is neither true nor false'],
    ['--help=yes', '--help: "yes" is neither true nor false'],
    ['-v=yes', '-v: "yes" is neither true nor false'],
    ['-v2', '-v: "2" is neither true nor false'],
  ] as const)
    t.throws(() => prepare(typed), { code: 'ERR_CONFIG', message }, typed);
});

test('words behind --, a lone dash and help reach yargs as plain words, and come back as they were typed', (t) => {
  const typed = ['put', '-', 'help', '--', '-x', '--', '--dry-run=yes', 'true'];
  const { words, restored, asksForHelp } = prepare(...typed);
  t.false(asksForHelp);
  t.true(words.every((word) => !word.startsWith('-') || word === '--help=false'));
  t.false(words.includes('help'));
  t.deepEqual(restored({ _: [...words], hex: true, n: 7 }), {
    _: ['put', '-', 'help', '--help=false', '-x', '--', '--dry-run=yes', 'true'],
    hex: true,
    n: 7,
  });
  t.is(restored({ file: words[1] }).file, '-');
});

test('behind -- nothing asks for help; before it, the question stays', (t) => {
  t.false(prepare('get', '--', '--help').asksForHelp);
  const { asksForHelp, words } = prepare('get', '--help', '--', 'k');
  t.true(asksForHelp);
  t.deepEqual(words, ['get', '--help=true', '--help=true', 'k']);
});

test('help is a question where there are no arguments', (t) => {
  t.deepEqual(prepareWords(['status', 'help'], [], false).words, ['status', 'help']);
});

test('a name that is a flag of one action is a flag of all that have it', async (t) => {
  for (const command of (await allCommands()).map(definitionOf)) {
    const all = [command, ...command.actions].flatMap(({ options }) => options);
    for (const { name } of all.filter(({ isFlag }) => isFlag))
      t.true(
        all.filter((option) => option.name === name).every(({ isFlag }) => isFlag),
        `${command.name} --${name}`,
      );
  }
});
