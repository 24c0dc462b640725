/**
 * Stands in the place of ../package.ts in the one-file executable (scripts/make-binary.mjs): files and the programs of
 * threads are assets of the executable, and so is the addon, which is unpacked to be loaded (unpack.ts).
 */
import { getAsset, getRawAsset } from 'node:sea';
import { getEnvironmentData, setEnvironmentData, Worker, type WorkerOptions } from 'node:worker_threads';
import { FarkvError } from '../../core/errors.js';
import type * as Package from '../package.js';
import { loadUnpacked } from './unpack.js';

const asset = (name: string): Buffer => Buffer.from(getRawAsset(name) as ArrayBuffer);

export const packageFile: typeof Package.packageFile = (path) => Buffer.from(asset(path));

export const dependencyFile: typeof Package.dependencyFile = (name, file) =>
  packageFile(`node_modules/${name}/${file}`);

export const sourceFolder: typeof Package.sourceFolder = () => undefined;

/** Threads have from the one that starts them where its addon is: all share one copy, which has one set of statics. */
const LOADED = 'farkv addon';

export const loadAddon: typeof Package.loadAddon = () => {
  const loaded = getEnvironmentData(LOADED);
  if (typeof loaded === 'string') {
    const module = { exports: {} };
    process.dlopen(module, loaded);
    return module.exports;
  }
  const { path, exports } = loadUnpacked(asset('farkv.node'));
  setEnvironmentData(LOADED, path);
  return exports;
};

/** The addon is loaded first, for the threads that this one starts. A thread that cannot have it says why by itself. */
export function startThread(program: Package.ThreadProgram, options: WorkerOptions): Worker {
  try {
    loadAddon();
  } catch (error) {
    if (!(error instanceof FarkvError)) throw error;
  }
  return new Worker(getAsset(`${program}.js`, 'utf8'), { ...options, eval: true });
}

export const REBUILD = 'make this file again in a clone of farkv: npm run build:binary';

export const howToInstall: typeof Package.howToInstall = () =>
  'which the one-file executable cannot contain; run it with farkv as npm installs it: npm install farkv, beside that package';
