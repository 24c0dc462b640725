// The licences of what is in the one-file executable, as one text: farkv's own, those of the npm packages whose files are
// in the bundles, and Node.js's, which has those of all that Node.js is made of. Throws where an npm package has none.
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** Where the makers of Node.js, and those who package it, put its licence. */
const NODE = ['LICENSE', 'share/doc/nodejs/LICENSE', 'share/doc/node/LICENSE'];

/** The folders in node_modules, as paths from the root, that have one of these files. */
function packagesOf(inputs) {
  const folders = inputs.map((path) => /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)?.[0]);
  return [...new Set([...folders, 'node_modules/uplot'])].filter((folder) => folder !== undefined).sort();
}

/** Most packages have a file; a few have only a name in package.json, and their authors. */
function ofPackage(folder) {
  const { name, version, license, author } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const files = readdirSync(folder).filter((file) => /^(licen[cs]e|copying|notice)/i.test(file));
  if (files.length === 0 && license === undefined) throw new Error(`${name} has no licence`);
  const text =
    files.length > 0
      ? files.map((file) => readFileSync(join(folder, file), 'utf8').trim()).join('\n\n')
      : `${license}, by ${author?.name ?? author}`;
  return section(`${name} ${version}: ${license}`, text);
}

const section = (title, text) => `${'='.repeat(80)}\n${title}\n${'='.repeat(80)}\n\n${text}\n`;

export function licenses(root, inputs) {
  const prefix = dirname(dirname(process.execPath));
  const node = NODE.map((path) => join(prefix, path)).find(existsSync);
  const elsewhere = `https://github.com/nodejs/node/blob/v${process.versions.node}/LICENSE`;
  if (node === undefined)
    process.stderr.write(`licences: none of Node.js below ${prefix}; to give the file away, add ${elsewhere}\n`);
  return [
    section('farkv', readFileSync(join(root, 'LICENSE'), 'utf8')),
    ...packagesOf(inputs).map((folder) => ofPackage(join(root, folder))),
    section(`Node.js ${process.versions.node}`, node === undefined ? elsewhere : readFileSync(node, 'utf8')),
  ].join('\n');
}
