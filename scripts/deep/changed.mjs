// Chooses parts by the folders that changed. Which folder asks for which parts stands in docs/testing.md alone, in the
// table below HEADING: folders in the first column, parts in the second, both as code.
import { git, listed, untracked } from './tree.mjs';

const HEADING = '### Which parts a change asks for';

const codes = (cell) => Array.from(cell.matchAll(/`([^`]+)`/g), ([, code]) => code);

/** One entry per folder, with the names of its parts. `.` has the files that are in no folder. */
export function folderTable(markdown) {
  const section = markdown.split(`${HEADING}\n`)[1]?.split(/^##+ /m)[0] ?? '';
  return section
    .split('\n')
    .filter((line) => line.startsWith('| `'))
    .flatMap((line) => {
      const [, folders, parts] = line.split('|');
      return codes(folders).map((folder) => ({ folder: folder.replace(/\/$/, ''), parts: codes(parts) }));
    });
}

/** The parts that a file asks for: those of its innermost folder in the table, or undefined where none is there. */
function partsOf(file, table) {
  const inside = ({ folder }) => (folder === '.' ? !file.includes('/') : file.startsWith(`${folder}/`));
  return table.filter(inside).sort((a, b) => b.folder.length - a.folder.length)[0]?.parts;
}

/** The parts of `all` that the files ask for. A file of a folder that the table lacks asks for all. */
export function partsFor(files, table, all) {
  const asked = new Set(files.flatMap((file) => partsOf(file, table) ?? all));
  return all.filter((part) => asked.has(part));
}

/** The usual base: what has landed, else the commit before. */
export const usualBase = (root) =>
  git(root, 'rev-parse', '--verify', '--quiet', 'origin/main^{commit}') === undefined ? 'HEAD~1' : 'origin/main';

/** The files that changed since this branch left `base`, with what is not committed. Undefined where it is no commit. */
export function changedFiles(root, base) {
  const from = git(root, 'merge-base', base, 'HEAD')?.trim();
  if (from === undefined) return undefined;
  return [...listed(git(root, 'diff', '--name-only', '--no-renames', '-z', from)), ...untracked(root)];
}
