// Writes the CommonJS entries that package.json's `exports` name under `require`, and their types: beside each ES module
// x.js a file x.cjs, which loads that very module. So a program that has farkv both ways has one client, one class
// FarkvError and one addon.
//
// Node.js loads the module, by a require of its own: the loaders of test runners such as jest take no ES modules, and
// lend their own `process`. So the one of Node.js's first context is taken. Run after tsc, by scripts/setup.mjs.
import { readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { pathToFileURL } from 'node:url';

const root = join(import.meta.dirname, '..');
const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const { BUNDLED } = await import(pathToFileURL(join(root, 'dist/native/runtime.js')).href);

/** In a bundle, the file and the package.json two folders above it are another's, if they are there at all. */
const code = (module) => `'use strict';
let load;
function inPackage() {
  try {
    const { getBuiltinModule } = require('node:vm').runInThisContext('process');
    load = getBuiltinModule('node:module').createRequire(__filename);
    return load('../../package.json').name === 'farkv';
  } catch {
    return false;
  }
}
if (!inPackage()) throw Object.assign(new Error(${JSON.stringify(BUNDLED)}), { code: 'ERR_ADDON' });
module.exports = load('./${module}');
`;

/** Before TypeScript 5.8, and with `module: node16`, a CommonJS file may not name an ES module. Node.js takes it. */
const types = (module, hasDefault) => `// @ts-ignore
export * from './${module}';
${hasDefault ? `// @ts-ignore\nexport { default } from './${module}';\n` : ''}`;

for (const { require: entry, default: module } of Object.values(exports)) {
  if (entry === undefined) continue;
  const name = basename(module);
  const source = readFileSync(join(root, module), 'utf8');
  writeFileSync(join(root, entry.default), code(name));
  writeFileSync(join(root, entry.types), types(name, /^export default /m.test(source)));
}
