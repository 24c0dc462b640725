// The state of the working tree that a result belongs to. Not for: which folders changed (changed.mjs).
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';

/** The output of git as text, or undefined where git failed. */
export function git(root, ...args) {
  const { status, stdout } = spawnSync('git', args, { cwd: root, encoding: 'utf8', maxBuffer: 2 ** 30 });
  return status === 0 ? stdout : undefined;
}

export const listed = (text) => (text ?? '').split('\0').filter((path) => path !== '');
export const untracked = (root) => listed(git(root, 'ls-files', '-z', '--others', '--exclude-standard'));

/**
 * The commit; with `+` and a hash of the changes when the tree is dirty, so that each state has a name of its own.
 * Undefined without a commit.
 */
export function stateOf(root) {
  const head = git(root, 'rev-parse', '--verify', '--quiet', 'HEAD')?.trim();
  if (head === undefined) return undefined;
  const changes = git(root, 'diff', 'HEAD', '--binary') ?? '';
  const files = untracked(root);
  if (changes === '' && files.length === 0) return head;
  const hash = createHash('sha256').update(changes);
  for (const path of files) {
    hash.update(`\0${path}\0`);
    const at = join(root, path);
    if (existsSync(at) && statSync(at).isFile()) hash.update(readFileSync(at));
  }
  return `${head}+${hash.digest('hex').slice(0, 8)}`;
}

export const short = (state) => state.replace(/^([0-9a-f]{7})[0-9a-f]*/, '$1');
