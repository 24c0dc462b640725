/**
 * What an installed farkv is made of: every dependency is pinned by the lock file, has a licence that lets anybody use
 * it, and is listed.
 */
import test from 'ava';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inRepository } from '../bench/repository.js';

interface Locked {
  readonly version?: string;
  readonly resolved?: string;
  readonly integrity?: string;
  readonly license?: string;
  readonly dev?: boolean;
  readonly hasInstallScript?: boolean;
}
interface Manifest {
  readonly engines: { readonly node: string };
  readonly dependencies: Readonly<Record<string, string>>;
  readonly peerDependencies: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>>;
}

const LICENCES = ['0BSD', 'Apache-2.0', 'BSD-2-Clause', 'BSD-3-Clause', 'ISC', 'MIT', '(MIT AND Zlib)'];

/** The package of an import that is not a dynamic one. */
const IMPORT = /^(?:import|export)\b(?:[^'";=]*\bfrom)? *['"]((?:@[^/'"]+\/)?[^./'"][^/'"]*)/gm;

const read = (path: string): unknown => JSON.parse(readFileSync(inRepository(path), 'utf8'));
const { packages } = read('package-lock.json') as { readonly packages: Readonly<Record<string, Locked>> };
const locked = Object.entries(packages).filter(([path]) => path !== '');
const installed = locked.filter(([, one]) => one.dev !== true);
/** The build puts msgpackr into farkv's own files (scripts/bundle.mjs). */
const used = locked.filter(([path, one]) => one.dev !== true || path === 'node_modules/msgpackr');
const nameOf = (path: string): string => path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length);

test('the lock file pins each package by its version and the hash of its contents', (t) => {
  for (const [path, { version, integrity }] of locked) {
    t.regex(version ?? '', /^\d+\.\d+\.\d+/, path);
    t.regex(integrity ?? '', /^sha512-/, path);
  }
  const { dependencies, devDependencies, engines } = read('package.json') as Manifest;
  t.like(packages[''], { dependencies, devDependencies, engines });
});

test('Node.js whose require() takes no ES module is refused, by npm and by the build', (t) => {
  t.is((read('package.json') as Manifest).engines.node, '^20.19.0 || ^22.12.0 || >=23');
  for (const version of ['18.20.8', '20.18.3', '21.7.3', '22.11.0']) {
    const pretend = `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '${version}' } })`;
    const { status, stderr } = spawnSync(
      process.execPath,
      ['--import', `data:text/javascript,${encodeURIComponent(pretend)}`, inRepository('scripts/setup.mjs')],
      { encoding: 'utf8' },
    );
    t.is(status, 1);
    t.regex(stderr, new RegExp(`needed.*this is ${version}`));
  }
});

test('what is installed with farkv has a licence that lets anybody use it', (t) => {
  for (const [path, { license = 'none' }] of used) t.true(LICENCES.includes(license), `${path}: ${license}`);
});

test('the list of dependencies and the SBOM have all of them, and are those of the lock file', (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'farkv-sbom-'));
  t.teardown(() => rmSync(directory, { recursive: true }));
  const { status, stderr } = spawnSync(process.execPath, [inRepository('scripts/sbom.mjs'), directory], {
    encoding: 'utf8',
  });
  t.is(status, 0, stderr);
  t.is(
    readFileSync(join(directory, 'DEPENDENCIES.md'), 'utf8'),
    readFileSync(inRepository('DEPENDENCIES.md'), 'utf8'),
    'run node scripts/sbom.mjs',
  );
  const sbom = JSON.parse(readFileSync(join(directory, 'sbom.cdx.json'), 'utf8')) as {
    readonly bomFormat: string;
    readonly components: readonly { readonly name: string; readonly version: string; readonly licenses: unknown[] }[];
  };
  t.is(sbom.bomFormat, 'CycloneDX');
  t.deepEqual(
    new Set(sbom.components.map(({ name, version }) => `${name}@${version}`)),
    new Set(used.map(([path, { version = '' }]) => `${nameOf(path)}@${version}`)),
  );
  t.true(sbom.components.every(({ licenses }) => licenses.length > 0));
});

test('what a module of the package imports is installed with it, or bundled with its licence', (t) => {
  const { stdout } = spawnSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
    cwd: inRepository('.'),
    encoding: 'utf8',
    maxBuffer: 64 << 20,
  });
  const [packed] = JSON.parse(stdout) as { readonly files: readonly { readonly path: string }[] }[];
  const modules = (packed?.files ?? []).map(({ path }) => path).filter((path) => /^dist\/.*\.(?:js|d\.ts)$/.test(path));
  t.true(modules.length > 100);
  const { peerDependencies } = read('package.json') as Manifest;
  const there = new Set([...installed.map(([path]) => nameOf(path)), ...Object.keys(peerDependencies)]);
  const lacking = modules.flatMap((path) =>
    Array.from(readFileSync(inRepository(path), 'utf8').matchAll(IMPORT), ([, name = '']) => name)
      .filter((name) => !isBuiltin(name) && !there.has(name))
      .map((name) => `${path}: ${name}`),
  );
  t.deepEqual(lacking, []);
  const text = readFileSync(inRepository('dist/core/msgpackr.js'), 'utf8');
  t.true(text.includes(readFileSync(inRepository('node_modules/msgpackr/LICENSE'), 'utf8').trim()));
});

test('nothing is run or compiled when the package is installed', (t) => {
  // pnpm ends with an error where a package has a script that nobody has decided on, and npm and yarn warn of it.
  for (const [path, { hasInstallScript }] of installed) t.not(hasInstallScript, true, path);
  const { scripts, gypfile } = read('package.json') as {
    readonly scripts: Readonly<Record<string, string>>;
    readonly gypfile: boolean;
  };
  for (const name of ['preinstall', 'install', 'postinstall', 'prepare']) t.false(name in scripts, name);
  // npm publish would add an install script for a file *.gyp in the root, also for one that it leaves out.
  t.false(gypfile);
});
