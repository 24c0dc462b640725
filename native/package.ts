/**
 * What farkv takes from its own package while it runs: files, the addon, and the programs of its threads. The one-file
 * executable has no package: one-file/package.ts stands in this module's place there, and exports the same.
 */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { Worker, type WorkerOptions } from 'node:worker_threads';
import { FarkvError } from '../core/errors.js';
import { addonFile, checkWhole, HOW_TO_BUILD } from './addon-file.js';
import { packageRoot, whyNotLoaded } from './runtime.js';

/** Modules that are the entry of a thread, as paths in dist/. */
export type ThreadProgram = 'server/node-worker' | 'server/control/front-worker' | 'bench/ycsb/thread';

/** A file of the package, by its path in it. Throws where the package has no such file. */
export function packageFile(path: string): Buffer {
  return readFileSync(join(packageRoot(import.meta.url), path));
}

/** A file that lies beside the entry of a package which farkv depends on. */
export function dependencyFile(name: string, file: string): Buffer {
  return readFileSync(join(dirname(createRequire(import.meta.url).resolve(name)), file));
}

/** The folder in which the addon can be built; undefined: farkv is one file. Throws ERR_ADDON. */
export function sourceFolder(): string | undefined {
  return packageRoot(import.meta.url);
}

/** What the addon exports. Throws ERR_ADDON. */
export function loadAddon(): unknown {
  const file = addonFile(packageRoot(import.meta.url));
  checkWhole(file);
  try {
    return createRequire(import.meta.url)(file) as unknown;
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new FarkvError(
      'ERR_ADDON',
      whyNotLoaded(cause) ??
        `farkv's native addon could not be loaded (${reason}). Prebuilt ones need glibc 2.28 or later, or musl 1.2; ${HOW_TO_BUILD}`,
      { cause },
    );
  }
}

export function startThread(program: ThreadProgram, options: WorkerOptions): Worker {
  return new Worker(new URL(`../${program}.js`, import.meta.url), options);
}

/** How to get an addon that has what was missing when this one was built. */
export const REBUILD = 'npx farkv build';

/** How to get a package that farkv uses where it is there. */
export const howToInstall = (name: string): string =>
  `which is not installed where farkv can find it; run: npm install ${name} (where farkv is installed globally: npm install -g ${name})`;
