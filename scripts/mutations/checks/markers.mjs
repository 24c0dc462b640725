/**
 * Markers: comments "mutation: LIST/NAME" in the sources, several names with commas between. A marker stands at the end of
 * the line that it marks, or alone on the line before. LIST is a file of scripts/mutations, NAME a row of it.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { tokensOf } from './tokens.mjs';

const FOLDERS = ['adapters', 'client', 'core', 'native', 'net', 'server', 'tools', 'test/chaos', 'test/power'];
const isMarked = (path) => /\.[ch]$|(?<!\.test|\.d)\.ts$/.test(path) && !path.startsWith('test/');

const MARKER = /(?:\/\/|\/\*) mutation: ([a-z0-9/, -]+?)(?: \*\/)?$/;

/** Of each marker of a source its name, and the number of its line, from 0. */
function* markersOf(source) {
  for (const [line, text] of source.split('\n').entries())
    for (const name of MARKER.exec(text)?.[1].split(', ') ?? []) yield { name, line };
}

/** All markers below the project's folder, each { name, file }. */
export function allMarkers(root) {
  const files = FOLDERS.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter(isMarked)
      .map((path) => `${folder}/${path}`),
  );
  return files.flatMap((file) =>
    [...markersOf(readFileSync(join(root, file), 'utf8'))].map(({ name }) => ({ name, file })),
  );
}

/** The tokens, and the first and the last one of the line that has the marker, or of the next with a token. */
function placeOf(source, { file, name }) {
  const tokens = tokensOf(file, source);
  const line = [...markersOf(source)].find((marker) => marker.name === name)?.line;
  if (line === undefined) throw new Error(`${file} has no marker ${name}`);
  const lines = source.split('\n');
  const start = lines.slice(0, line).join('\n').length;
  const first = tokens.findIndex((token) => token.start >= start);
  const end = source.indexOf('\n', tokens[first].start);
  const beyond = tokens.findIndex((token) => token.start > end);
  return { source, tokens, first, last: (beyond < 0 ? tokens.length : beyond) - 1 };
}

/** The source with the mutation { file, name, operator }. Throws when its operator does not apply. */
export function mutate(source, mutation) {
  const place = placeOf(source, mutation);
  const { first, last, by } = mutation.operator(place);
  return source.slice(0, place.tokens[first].start) + by + source.slice(place.tokens[last].end);
}
