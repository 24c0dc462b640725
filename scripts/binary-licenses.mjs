// The licences of what is in the one-file executable, as one text: farkv's own, those of the npm packages whose files are
// in the bundles, and Node.js's, which has those of all that Node.js is made of. Throws where an npm package has none.
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './addons.mjs';
import { NODE_VERSION } from './binary-node.mjs';

/** What is in the file and no input of the bundles: an asset, and what the build has put into a module of farkv (bundle.mjs). */
const UNSEEN = ['node_modules/uplot', 'node_modules/msgpackr'];

/** The folders in node_modules, as paths from the root, that have one of these files. */
function packagesOf(inputs) {
  const folders = inputs.map((path) => /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)?.[0]);
  return [...new Set([...folders, ...UNSEEN])].filter((folder) => folder !== undefined).sort();
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

/** `node`: the folder of the Node.js that is in the file; `inputs`: the files in the bundles. */
export function licenses(node, inputs) {
  return [
    section('farkv', readFileSync(join(root, 'LICENSE'), 'utf8')),
    ...packagesOf(inputs).map((folder) => ofPackage(join(root, folder))),
    section(`Node.js ${NODE_VERSION}`, readFileSync(join(node, 'LICENSE'), 'utf8')),
  ].join('\n');
}
