/** How programs get at the package: require, import, jest, TypeScript's ways of finding types, bundlers. */
import test, { type ExecutionContext } from 'ava';
import { build } from 'esbuild';
import { renameSync, rmSync } from 'node:fs';
import { runInThisContext } from 'node:vm';
import webpack from 'webpack';
import { BUNDLED, LEFT_OUT } from '../../native/runtime.js';
import { Project, type Ran } from '../support/installed-package.js';

/** Starts a server, and reads what it has put there. */
const USE = `
  const server = await startServer({ listen: '127.0.0.1:0', memory: '64mb' });
  const kv = await connect(server.addresses);
  const store = new KeyvFarkv(kv);
  await store.set('key', 'value');
  const value = await store.get('key');
  await kv.close();
  await server.close();
`;
const ENTRIES = ['farkv', 'farkv/server', 'farkv/keyv', 'farkv/unstorage', 'farkv/session', 'farkv/opentelemetry'];
const REQUIRES = `
const { connect, FarkvError } = require('farkv');
const { startServer } = require('farkv/server');
const { KeyvFarkv } = require('farkv/keyv');
`;
const IMPORTS = `
import { connect, FarkvError } from 'farkv';
import { startServer } from 'farkv/server';
import { KeyvFarkv } from 'farkv/keyv';
`;

/** What the error says to write, as the options that it is. */
const optionsOf = (line: string): object => runInThisContext(`({ ${line} })`) as object;

function succeeds(t: ExecutionContext, { code, stdout, stderr }: Ran, printed: string): void {
  t.is(stderr, '');
  t.is(code, 0);
  t.is(stdout, printed);
}

test('require and import, in one program too', (t) => {
  const project = new Project(t, ['express-session']);
  project.write('use.cjs', `${REQUIRES} (async () => { ${USE} console.log(value); })();`);
  project.write('use.mjs', `${IMPORTS} ${USE} console.log(value);`);
  project.write(
    'both.cjs',
    `(async () => { for (const entry of ${JSON.stringify(ENTRIES)}) {
       const [one, other] = [require(entry), await import(entry)];
       for (const name of Object.keys(other)) if (one[name] !== other[name]) console.log(entry, name);
       console.log(Object.keys(other).length > 0);
     } })();`,
  );
  succeeds(t, project.node('use.cjs'), 'value\n');
  succeeds(t, project.node('use.mjs'), 'value\n');
  succeeds(t, project.node('both.cjs'), 'true\n'.repeat(ENTRIES.length));
});

test('jest runs a test that requires farkv, without configuration', (t) => {
  const project = new Project(t);
  project.write(
    'farkv.test.js',
    `${REQUIRES}
     test('farkv', async () => { ${USE}
       expect(value).toBe('value');
       await expect(kv.get('key')).rejects.toBeInstanceOf(FarkvError);
     });
     test('what crosses the sandbox', async () => {
       const server = await startServer({ listen: '127.0.0.1:0', memory: '64mb' });
       const kv = await connect({ servers: server.addresses, codec: 'msgpack' });
       try {
         const value = { list: [1, { two: 2n }], bytes: Buffer.from('b'), text: 't', none: null };
         await kv.put('key', value);
         expect(await kv.get('key')).toEqual(value);
         expect(await kv.getMany(['key', Buffer.from('key')])).toEqual([value, value]);
         await kv.put('date', new Date(5));
         expect(await kv.get('date')).toEqual(new Date(5));
         await kv.put('map', new Map([['a', new Set([1])]]));
         expect((await kv.get('map')).a.has(1)).toBe(true); // a Map comes back as an object, as ever
       } finally {
         await kv.close();
         await server.close();
       }
     });`,
  );
  const { code, stderr } = project.tool('jest/bin/jest.js', '--ci', '--cacheDirectory', project.path('cache'));
  t.is(code, 0, stderr);
  t.regex(stderr, /2 passed/);
});

test('each way in which TypeScript finds types has those of all entries, and they are not any', (t) => {
  const project = new Project(t, ['@types/node', '@types/express-session', '@types/express', 'keyv', 'unstorage']);
  // Without skipLibCheck, the package's own declarations are checked too.
  const own = `
    import { connect, type Client, type BufferValue } from 'farkv';
    import { startServer } from 'farkv/server';
    import { KeyvFarkv } from 'farkv/keyv';
    export const client: Promise<Client<BufferValue, Buffer>> = connect('127.0.0.1:7400');
    export const store = new KeyvFarkv('127.0.0.1:7400', { prefix: 'p' });
    // @ts-expect-error
    void connect(5);
    // @ts-expect-error
    void startServer({ listne: '' });
    // @ts-expect-error
    void new KeyvFarkv();
  `;
  // The declarations of these hosts name packages that are not here.
  const hosts = `
    import { farkvDriver } from 'farkv/unstorage';
    import { sessionStore } from 'farkv/session';
    export const name: string | undefined = farkvDriver({ source: '127.0.0.1:7400' }).name;
    // @ts-expect-error
    void farkvDriver({});
    // @ts-expect-error
    void sessionStore();
  `;
  for (const end of ['ts', 'mts', 'cts']) {
    project.write(`own.${end}`, own);
    project.write(`hosts.${end}`, hosts);
  }
  const ways: readonly (readonly [string, string, ...string[]])[] = [
    ['commonjs', 'node10', 'ts'],
    ['esnext', 'bundler', 'ts'],
    ['node16', 'node16', 'ts', 'mts', 'cts'],
    ['nodenext', 'nodenext', 'ts', 'mts', 'cts'],
  ];
  for (const [module, resolution, ...ends] of ways) {
    const options = ['--noEmit', '--strict', '--esModuleInterop', '--types', 'node', '--target', 'es2023'];
    options.push('--module', module, '--moduleResolution', resolution);
    const check = (...more: readonly string[]): void => {
      const { code, stdout } = project.tool('typescript/bin/tsc', ...options, ...more);
      t.is(code, 0, `${module}, ${resolution}: ${stdout}`);
    };
    check(...ends.map((end) => `own.${end}`));
    check('--skipLibCheck', ...ends.map((end) => `hosts.${end}`));
  }
});

for (const format of ['cjs', 'esm'] as const) {
  test(`esbuild, ${format}: a bundle with farkv in it names the line to add, and runs with that line`, async (t) => {
    const project = new Project(t);
    const entry = project.write(
      'app.mjs',
      `${IMPORTS} async function main() { ${USE} console.log(value); } void main();`,
    );
    const outfile = project.path(`out/index.${format === 'cjs' ? 'cjs' : 'mjs'}`);
    const bundle = async (more: object): Promise<Ran> => {
      await build({
        entryPoints: [entry],
        bundle: true,
        platform: 'node',
        format,
        outfile,
        ...more,
        absWorkingDir: project.directory,
        logLevel: 'silent',
      });
      return project.node(outfile);
    };
    const { code, stderr } = await bundle({});
    t.is(code, 1);
    t.true(stderr.includes(BUNDLED), stderr);
    succeeds(t, await bundle(optionsOf(LEFT_OUT.esbuild)), 'value\n');
  });
}

test('esbuild: a required farkv in a bundle names the line too', async (t) => {
  const project = new Project(t);
  const entry = project.write('app.cjs', "require('farkv');");
  const outfile = project.path('client/index.js');
  await build({ entryPoints: [entry], bundle: true, platform: 'node', outfile, absWorkingDir: project.directory });
  const { code, stderr } = project.node(outfile);
  t.is(code, 1);
  t.true(stderr.includes(BUNDLED), stderr);
});

test('webpack: a bundle with farkv in it names the line to add, and runs with that line', async (t) => {
  const project = new Project(t);
  const entry = project.write(
    'app.mjs',
    `${IMPORTS} async function main() { ${USE} console.log(value); } void main();`,
  );
  const bundle = async (more: object): Promise<void> => {
    const compiler = webpack({
      mode: 'development',
      devtool: false,
      target: 'node20',
      context: project.directory,
      entry,
      ...more,
      output: { path: project.path('out'), filename: 'bundle.cjs' },
    });
    const stats = await new Promise<webpack.Stats | undefined>((resolve, reject) => {
      compiler.run((error, done) => (error === null ? resolve(done) : reject(error)));
    });
    t.false(stats?.hasErrors(), stats?.toString('errors-only'));
  };
  await bundle({});
  // webpack writes the paths of this machine into its bundle; on another one they lead nowhere.
  renameSync(project.path('node_modules/farkv'), project.path('elsewhere'));
  const { code, stderr } = project.node('out/bundle.cjs');
  t.is(code, 1);
  t.true(stderr.includes(BUNDLED), stderr);
  renameSync(project.path('elsewhere'), project.path('node_modules/farkv'));
  await bundle(optionsOf(LEFT_OUT.webpack));
  succeeds(t, project.node('out/bundle.cjs'), 'value\n');
});

for (const format of ['cjs', 'es'] as const) {
  test(`Rollup, ${format}: a bundle with farkv in it names the line to add, and runs with that line`, (t) => {
    const project = new Project(t, ['@rollup/plugin-commonjs', '@rollup/plugin-node-resolve']);
    project.write('app.mjs', `${IMPORTS} async function main() { ${USE} console.log(value); } void main();`);
    const end = format === 'cjs' ? 'cjs' : 'mjs';
    const bundle = (...lines: readonly string[]): Ran => {
      project.write(
        'rollup.config.mjs',
        `import commonjs from '@rollup/plugin-commonjs';
         import { nodeResolve } from '@rollup/plugin-node-resolve';
         export default {
           input: 'app.mjs',
           output: { dir: 'out', format: '${format}', entryFileNames: '[name].${end}', chunkFileNames: '[name].${end}' },
           plugins: [nodeResolve({ preferBuiltins: true }), commonjs()],
           ${lines.join()}
         };`,
      );
      rmSync(project.path('out'), { recursive: true, force: true });
      const { code, stderr } = project.tool('rollup/dist/bin/rollup', '--config', '--silent');
      t.is(code, 0, stderr);
      return project.node(`out/app.${end}`);
    };
    const { code, stderr } = bundle();
    t.is(code, 1);
    t.true(stderr.includes(BUNDLED), stderr);
    succeeds(t, bundle(LEFT_OUT['Rollup, Vite']), 'value\n');
  });
}
