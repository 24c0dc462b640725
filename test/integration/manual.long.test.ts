/** The manual pages and the completions of bash and fish, against what each command's --help says. */
import test from 'ava';
import { execFile, spawnSync } from 'node:child_process';
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
