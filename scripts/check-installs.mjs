// Installs the package by each package manager, in an empty project, and uses it there with each version of Node.js, and
// with other runtimes, which refuse it with one sentence: node scripts/check-installs.mjs TARBALL USE.mjs USE.cjs
// Managers, versions of Node.js and runtimes come from npm's registry, in the versions below. Run by check-package.sh.
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import process from 'node:process';

const { arch } = process;
const NODES = { 20: '20.20.2', 22: '22.23.3', 24: '24.21.0', 26: '26.12.1' };
/** By the folder in node_modules. */
const TOOLS = {
  ...Object.fromEntries(
    Object.entries(NODES).map(([major, version]) => [`node${major}`, `node-linux-${arch}@${version}`]),
  ),
  npm11: 'npm@11.21.2',
  npm12: 'npm@12.2.2',
  pnpm11: 'pnpm@11.28.11',
  pnpm12: `@pnpm/exe.linux-${arch}@12.21.0`,
  yarn1: 'yarn@1.22.22',
  yarn4: '@yarnpkg/cli-dist@4.18.1',
  bun: `@oven/bun-linux-${arch === 'arm64' ? 'aarch64' : arch}@1.4.5`,
  deno: `@deno/linux-${arch}-glibc@2.9.6`,
};

const [tarball, useModule, useCommonJs] = process.argv.slice(2).map((path) => resolve(path));
const work = mkdtempSync(join(tmpdir(), 'farkv-installs-'));
process.on('exit', () => rmSync(work, { recursive: true, force: true }));

function fail(text) {
  process.stderr.write(`check-installs: FAILED: ${text}\n`);
  process.exit(1);
}

function run(directory, env, command, ...args) {
  const ran = spawnSync(command, args, {
    cwd: directory,
    encoding: 'utf8',
    maxBuffer: 64 << 20,
    env: { ...process.env, ...env },
  });
  const { status: code, stdout, stderr } = ran;
  return { code, stdout, stderr, output: `${ran.error?.message ?? ''}${stdout}${stderr}` };
}

function must(directory, env, command, ...args) {
  const { code, output } = run(directory, env, command, ...args);
  if (code !== 0) fail(`in ${directory}: ${command} ${args.join(' ')} ended with ${code}:\n${output}`);
  return output;
}

/** What comes from elsewhere may not answer at once. */
function mustInTime(...words) {
  return run(...words).code === 0 ? '' : must(...words);
}

const specs = Object.entries(TOOLS).map(([folder, spec]) => `${folder}@npm:${spec}`);
mkdirSync(join(work, 'tools'));
writeFileSync(join(work, 'tools/package.json'), '{"private":true}');
// Two of them have optional packages of other machines, and bun an installation script that is not needed.
mustInTime(
  join(work, 'tools'),
  {},
  'npm',
  'install',
  '--silent',
  '--ignore-scripts',
  '--no-audit',
  '--no-fund',
  ...specs,
);
const tool = (...path) => join(work, 'tools/node_modules', ...path);
const nodeOf = (major) => tool(`node${major}`, 'bin');
/** The environment in which `node` is of this version. */
const withNode = (major, more = {}) => ({ PATH: `${nodeOf(major)}:${process.env.PATH}`, ...more });

function project(name, files = {}) {
  const directory = join(work, name);
  mkdirSync(directory);
  writeFileSync(join(directory, 'package.json'), '{"name":"project","version":"1.0.0","private":true}');
  for (const [path, text] of Object.entries(files)) writeFileSync(join(directory, path), text);
  copyFileSync(useModule, join(directory, 'use.mjs'));
  copyFileSync(useCommonJs, join(directory, 'use.cjs'));
  return directory;
}

const registry = must(work, {}, 'npm', 'config', 'get', 'registry').trim();
const certificates = process.env.NODE_EXTRA_CA_CERTS;
const yarnrc = (linker) =>
  [
    `nodeLinker: ${linker}`,
    `npmRegistryServer: ${registry.replace(/\/$/, '')}`,
    ...(certificates === undefined ? [] : [`httpsCaFilePath: ${certificates}`]),
    'enableTelemetry: false',
    'enableGlobalCache: false',
    `globalFolder: ${join(work, 'yarn')}`,
    // Of the registry's newest packages, as of others.
    'npmMinimalAgeGate: 0',
    '',
  ].join('\n');

const node = (file, ...args) => ['node', tool(file), ...args];
const npm = (folder) => node(join(folder, 'bin/npm-cli.js'), 'install', '--no-audit', '--no-fund', tarball);
const pnpm = (...command) => [...command, 'add', `file:${tarball}`, '--store-dir', join(work, 'pnpm-store')];
/** No setting is for farkv: pnpm ends with an error where a package has a script that nobody decided on. Each: the command that installs, the one that stands before `node`, files of the project. */
const MANAGERS = {
  'npm 11': { install: npm('npm11') },
  'npm 12': { install: npm('npm12') },
  'npm 12, --ignore-scripts': { install: [...npm('npm12'), '--ignore-scripts'] },
  'pnpm 11': { install: pnpm(...node('pnpm11/bin/pnpm.mjs')) },
  'pnpm 12': { install: pnpm(tool('pnpm12/pnpm')) },
  'yarn 1': {
    install: node(
      'yarn1/bin/yarn.js',
      'add',
      `file:${tarball}`,
      '--registry',
      registry,
      '--cache-folder',
      join(work, 'yarn1'),
    ),
  },
  'yarn 4': {
    install: node('yarn4/bin/yarn.js', 'add', `farkv@file:${tarball}`),
    files: { '.yarnrc.yml': yarnrc('node-modules'), 'yarn.lock': '' },
  },
  'yarn 4, Plug and Play': {
    install: node('yarn4/bin/yarn.js', 'add', `farkv@file:${tarball}`),
    before: node('yarn4/bin/yarn.js'),
    files: { '.yarnrc.yml': yarnrc('pnp'), 'yarn.lock': '' },
  },
};

let installed;
for (const [name, { install, before = [], files = {} }] of Object.entries(MANAGERS)) {
  const directory = project(name.replace(/\W+/g, '-'), files);
  const env = withNode(24);
  mustInTime(directory, env, ...install);
  const printed = must(directory, env, ...before, 'node', 'use.mjs');
  must(directory, env, ...before, 'node', 'use.cjs');
  process.stdout.write(`${name}: ${printed}`);
  installed ??= directory;
}

for (const [major, version] of Object.entries(NODES)) {
  if (must(installed, withNode(major), 'node', '--version').trim() !== `v${version}`)
    fail(`Node.js ${major} is not ${version}`);
  const printed = must(installed, withNode(major), 'node', 'use.mjs');
  must(installed, withNode(major), 'node', 'use.cjs');
  process.stdout.write(`Node.js ${version}: ${printed}`);
}

/** What they show of an error that nobody catches: its text; under Deno also the one place where it was made. */
const RUNTIMES = {
  Bun: {
    command: [tool('bun/bin/bun')],
    uncaught: (text, version) => [
      `FarkvError: ${text}`,
      ' code: "ERR_ADDON"',
      `Bun v${version} (Linux ${arch === 'arm64' ? 'arm64' : 'x64'})`,
    ],
  },
  Deno: {
    command: [tool('deno/deno'), 'run', '--allow-all'],
    uncaught: (text) => [`error: Uncaught (in promise) FarkvError: ${text}`, '    at ...'],
  },
};
const main = 'node_modules/farkv/dist/server/cli/main.js';
writeFileSync(
  join(installed, 'catch.mjs'),
  "await import('farkv').catch(({ code, message }) => { console.error(`${code} ${message}`); process.exitCode = 3; });",
);
for (const [name, { command, uncaught }] of Object.entries(RUNTIMES)) {
  const version = TOOLS[name.toLowerCase()].split('@').at(-1);
  const text = `farkv runs on Node.js 20.19, 22.12 or later, and this is ${name} ${version}: run this program with node`;
  for (const [words, wanted, lines] of [
    [['use.mjs'], 1, uncaught(text, version)],
    [['catch.mjs'], 3, [`ERR_ADDON ${text}`]],
    [[main, '--version'], 1, [`farkv: ${text}`]],
    [[main, 'server'], 1, [`farkv: ${text}`]],
  ]) {
    const { code, stdout, stderr } = run(installed, { DENO_NO_UPDATE_CHECK: '1', NO_COLOR: '1' }, ...command, ...words);
    const said = stderr
      .replace(/\n *return new FarkvError.*\n *\^\n *at notUnder .*/, '\n    at ...')
      .split('\n')
      .filter((line) => line !== '');
    if (code !== wanted || stdout !== '' || JSON.stringify(said) !== JSON.stringify(lines))
      fail(`${name}, ${words.join(' ')}: ended with ${code}:\n${stdout}${stderr}`);
  }
  process.stdout.write(`${name} ${version}: refused with one sentence, farkv too\n`);
}
