// Makes farkv a single file that runs without Node.js: node scripts/make-binary.mjs [FOLDER] [--arch x64|arm64] writes
// FOLDER/farkv-linux-ARCH and, beside it, the licences of what is in it (default: build, this machine's processor).
//
// The file is a Node.js (binary-node.mjs) with a blob (Node.js's "single executable application"): the command line and
// each thread's program, bundled, the addon, and the files that they read. native/one-file/package.ts takes them from
// there, in the place of native/package.ts.
//
// For another processor the blob has no compiled code, which depends on it: such a file starts later.
import { build } from 'esbuild';
import { copyFileSync, chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { makeAddon, missingFor, prefixOf, root, run, verbsLeftOut } from './addons.mjs';
import { licenses } from './binary-licenses.mjs';
import { NODE_VERSION, nodeFor } from './binary-node.mjs';
import { unfoundSymbols } from './symbol-hash.mjs';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { arch: { type: 'string', default: process.arch } },
});
const { arch } = values;
const target = resolve(positionals[0] ?? join(root, 'build'));
const own = arch === process.arch;
const addonTarget = { arch, library: 'glibc' };
function lacking() {
  if (!['x64', 'arm64'].includes(arch)) return 'a processor that farkv has addons for: x64, arm64';
  if (verbsLeftOut() !== undefined)
    return 'headers of RDMA, or it could never use a device: apt-get install libibverbs-dev librdmacm-dev, then npm run build';
  return missingFor(addonTarget);
}
const missing = lacking();
if (missing !== undefined) {
  process.stderr.write(`make-binary: farkv-linux-${arch} needs: ${missing}\n`);
  process.exit(1);
}
const work = mkdtempSync(join(tmpdir(), 'farkv-binary-'));
process.on('exit', () => rmSync(work, { recursive: true, force: true }));

const dist = (path) => join(root, 'dist', path);
/**
 * What a bundle takes in another's place. lmdb, which a benchmark of it needs, has an addon of its own, which cannot be in
 * a bundle.
 */
const instead = {
  name: 'instead',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /\/package\.js$/ }, ({ path, resolveDir }) =>
      resolve(resolveDir, path) === dist('native/package.js')
        ? { path: dist('native/one-file/package.js') }
        : undefined,
    );
    onResolve({ filter: /^lmdb$/ }, ({ path }) => ({ path, namespace: 'left-out' }));
    onLoad({ filter: /./, namespace: 'left-out' }, ({ path }) => ({
      contents: `throw Object.assign(new Error('${path} is not in this file'), { code: 'MODULE_NOT_FOUND' });`,
    }));
  },
};

/** The text of a program, and the paths of the files that it is made of. */
async function bundle(entry) {
  const { outputFiles, metafile } = await build({
    entryPoints: [dist(entry)],
    bundle: true,
    write: false,
    metafile: true,
    platform: 'node',
    format: 'cjs',
    target: `node${NODE_VERSION}`,
    plugins: [instead],
    // A module may look for files beside itself, and there are none: nobody can make files in /proc.
    define: { 'import.meta.url': '"file:///proc/farkv/one/file/farkv.js"' },
    logLevel: 'error',
    keepNames: true,
  });
  const outside = Object.values(metafile.outputs).flatMap(({ imports }) => imports.map(({ path }) => path));
  const missing = outside.filter((path) => !isBuiltin(path));
  if (missing.length > 0) throw new Error(`the bundle of ${entry} lacks ${missing.join(', ')}`);
  return { text: outputFiles[0].text, inputs: Object.keys(metafile.inputs) };
}

const threads = ['server/node-worker', 'server/control/front-worker', 'bench/ycsb/thread'];
const [main, ...programs] = await Promise.all(
  ['server/cli/one-file.js', ...threads.map((name) => `${name}.js`)].map(bundle),
);
const write = (name, text) => {
  writeFileSync(join(work, name), text);
  return join(work, name);
};

const assets = {};
threads.forEach((name, i) => (assets[`${name}.js`] = write(`${name.replaceAll('/', '-')}.js`, programs[i].text)));
const addon = join(work, 'farkv.node');
makeAddon(addonTarget, addon);
assets['farkv.node'] = addon;
for (const folder of ['server/http/page', 'dist/server/http/page', 'bench/ycsb/workloads'])
  for (const name of readdirSync(join(root, folder)))
    if (/(\.html|\.css|\.js|^workload[a-z])$/.test(name) && !/\.test\.js$/.test(name))
      assets[`${folder}/${name}`] = join(root, folder, name);
assets['package.json'] = join(root, 'package.json');
const uplot = dirname(new URL(import.meta.resolve('uplot')).pathname);
for (const name of ['uPlot.iife.min.js', 'uPlot.min.css']) assets[`node_modules/uplot/${name}`] = join(uplot, name);

// Named as stack traces show it.
write('farkv.js', main.text);
const config = write(
  'sea.json',
  JSON.stringify({
    main: 'farkv.js',
    output: join(work, 'blob'),
    disableExperimentalSEAWarning: true,
    useCodeCache: own,
    // NODE_OPTIONS of whoever starts it runs nothing inside of it.
    execArgvExtension: 'none',
    assets,
  }),
);
const node = nodeFor(arch);
run(join(nodeFor(process.arch), 'bin/node'), ['--experimental-sea-config', config], { cwd: work });

mkdirSync(target, { recursive: true });
const made = join(work, 'farkv');
copyFileSync(join(node, 'bin/node'), made);
chmodSync(made, 0o755);
run(`${prefixOf(arch)}strip`, ['--strip-unneeded', made]);
// Shown only if it fails: it warns of sections that it renames.
const fuse = 'NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2';
const inject = join(root, 'node_modules/postject/dist/cli.js');
run(process.execPath, [inject, made, 'NODE_SEA_BLOB', join(work, 'blob'), '--sentinel-fuse', fuse]);
const unfound = unfoundSymbols(made, ['napi_create_function', 'napi_module_register']);
if (unfound.length > 0)
  throw new Error(
    `as the blob was put in, ${unfound.length} symbols of Node.js were lost: ${unfound.slice(0, 5).join(', ')}`,
  );
const file = join(target, `farkv-linux-${arch}`);
// Renamed by a copy beside it: one that runs goes on with its own.
rmSync(file, { force: true });
copyFileSync(made, file);
writeFileSync(
  `${file}.LICENSES`,
  licenses(
    node,
    [main, ...programs].flatMap(({ inputs }) => inputs),
  ),
);
const mib = (path) => (statSync(path).size / 2 ** 20).toFixed(1);
process.stdout.write(
  `${file}: ${mib(file)} MiB, Node.js ${NODE_VERSION}; of them ours ${mib(join(work, 'blob'))} MiB\n`,
);
