/** The manual pages and the completions of the shells, against what each command's --help says. */
import test from 'ava';
import { execFile, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { COMMANDS } from '../../server/cli/command-list.js';
import { manual } from '../../server/cli/manual/index.js';
import { farkv } from '../support/cluster.js';

const run = promisify(execFile);

/** Options that stand at the front of a line. */
function optionsIn(help: string): string[] {
  return Array.from(help.matchAll(/^ +(?:-\w, )?(--?[\w-]+)/gm), ([, name = '']) => name).filter(
    (name) => !['--help', '--version'].includes(name),
  );
}

/** What bash would offer for the last word. */
async function completed(script: string, line: string): Promise<string[]> {
  const { stdout } = await run('bash', [
    '-c',
    `${script}\nCOMP_WORDS=("\${@:1}") COMP_CWORD=$(($# - 1))\n_farkv\nprintf '%s\\n' "\${COMPREPLY[@]}"`,
    'bash',
    ...line.split(' '),
  ]);
  return stdout.split('\n').filter((word) => word !== '');
}

test('a page and the completion have every option that --help has', async (t) => {
  const files = await manual();
  const script = files.get('bash-completion/completions/farkv') ?? '';
  for (const name of Object.keys(COMMANDS)) {
    const page = files.get(`man/man1/farkv-${name}.1`) ?? '';
    const options = optionsIn((await farkv([name, '--help'])).stdout);
    const offered = await completed(script, `farkv ${name} -`);
    for (const option of options) {
      t.true(page.includes(`\\fB${option.replaceAll('-', '\\-')}\\fR`), `${name}: ${option} in the page`);
      t.true(offered.includes(option), `${name}: ${option} in the completion`);
    }
    t.true(options.length > 0 || ['values', 'secrets', 'doctor', 'completion', 'build'].includes(name), name);
  }
  t.is(files.size, Object.keys(COMMANDS).length + 4);
});

/** What every shell offers for the last word. */
const OFFERED: readonly (readonly [line: string, words: string])[] = [
  ['farkv sec', 'secrets'],
  ['farkv shard re', 'rebalance reset'],
  ['farkv shard --connect a:1 mov', 'move'],
  ['farkv shard move --wai', '--wait'],
  ['farkv shard rebalance --dry', '--dry-run'],
  ['farkv shard reset --dry', ''],
  ['farkv get --transport v', 'verbs'],
  ['farkv bench r', 'run'],
  ['farkv bench run l', 'lmdb'],
  ['farkv bench run lmdb --no', '--no-harness'],
  ['farkv secrets issue /etc/farkv w', 'writer'],
  ['farkv server --level d', 'durable'],
];

test('bash completes commands, actions, and values, behind options too', async (t) => {
  const script = (await farkv(['completion', 'bash'])).stdout;
  const offers = async (line: string, words: string): Promise<void> => {
    t.deepEqual(await completed(script, line), words === '' ? [] : words.split(' '), line);
  };
  t.deepEqual(await completed(script, 'farkv '), Object.keys(COMMANDS));
  for (const [line, words] of OFFERED) await offers(line, words);
  await offers('farkv get --transport = v', 'verbs');
  await offers('farkv get -n 3 --polling a', 'auto always');
  await offers('farkv bench run lmdb ', '');
  await offers('farkv nothing ', '');
});

/** A minimal system has no fish. */
const withFish = spawnSync('fish', ['--version']).error === undefined ? test : test.skip;

withFish('fish completes commands, actions, and values, behind options too', async (t) => {
  const script = (await farkv(['completion', 'fish'])).stdout;
  for (const name of Object.keys(COMMANDS)) t.true(script.includes(` -a ${name} -d `), name);
  const offers = async (line: string, words: string): Promise<void> => {
    const { stdout } = await run('fish', ['--no-config', '-c', `${script}\ncomplete -C "${line}"`]);
    const offered = stdout.split('\n').map((one) => one.split('\t')[0] ?? '');
    t.deepEqual(offered.filter((one) => one !== '').join(' '), words, line);
  };
  await offers('farkv ', Object.keys(COMMANDS).sort().join(' '));
  for (const [line, words] of OFFERED) await offers(line, words);
  await offers('farkv get --transport=v', '--transport=verbs');
  await offers('farkv get -n 3 --polling a', 'always auto');
});

const withZsh = spawnSync('zsh', ['--version']).error === undefined ? test : test.skip;

/**
 * Types the line and a tab into an interactive zsh, and prints what its completion adds: zsh has no command for that.
 * `compadd` is what completions call; with -O, -A or -D it adds nothing.
 */
const TYPE_INTO_ZSH = `
zmodload zsh/zpty
zpty z zsh -f -i
for one in 'PROMPT= RPROMPT=; unsetopt prompt_cr prompt_sp beep; autoload -Uz compinit; compinit -u -D' "source \${(q)1}" 'bindkey "^I" complete-word' \
  'compadd() { if [[ \${@[1,(i)(-|--)]} == *-(O|A|D)\\ * ]]; then builtin compadd "$@"; return; fi; local -a found; builtin compadd -O found "$@"; (( $#found )) && print -rl -- "="\${^found}; builtin compadd "$@" }' \
  'begin() { print offers: }; finish() { print "all."; exit }; compprefuncs=(begin) comppostfuncs=(finish)' \
  'print rea""dy'
do zpty -w z "$one"; done
zpty -r -m z text '*ready*'
zpty -w -n z "$2"$'\\t'
zpty -r -m z text '*offers:*all.*'
print -r -- "$text"
`;

withZsh('zsh completes commands, actions, and values, behind options too', async (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'farkv-zsh-'));
  t.teardown(() => rmSync(directory, { recursive: true }));
  const script = join(directory, '_farkv');
  writeFileSync(script, (await farkv(['completion', 'zsh'])).stdout);
  const offers = async (line: string, words: string): Promise<void> => {
    const { stdout } = await run('zsh', ['-f', '-c', TYPE_INTO_ZSH, 'zsh', script, line]);
    const offered = stdout.slice(stdout.lastIndexOf('offers:')).matchAll(/^=(\S+)/gm);
    t.is([...new Set(Array.from(offered, ([, word]) => word))].join(' '), words, line);
  };
  await offers('farkv ', Object.keys(COMMANDS).join(' '));
  for (const [line, words] of OFFERED) await offers(line, words);
  await offers('farkv get --transport=v', 'verbs');
});

test('text of a command is no request to roff', async (t) => {
  for (const [path, page] of await manual()) {
    if (!path.startsWith('man/')) continue;
    const requests = new Set(Array.from(page.matchAll(/^[.'].*$/gm), ([line]) => line.split(' ')[0]));
    for (const request of requests)
      t.true(
        ['.\\"', '.TH', '.SH', '.SS', '.TP', '.PP', '.br', '.nf', '.fi'].includes(request ?? ''),
        `${path}: ${request ?? ''}`,
      );
    t.notRegex(page, /undefined|\[object/);
  }
});
