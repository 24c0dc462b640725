/** Builds bench/micro/region_loop.c, the floor under a GET over shared memory on this machine, and asks it for one round after the other. */
import { execFileSync } from 'node:child_process';
import { statSync } from 'node:fs';
import { inRepository } from '../repository.js';
import { Spoken } from './spoken.js';

export interface RegionLoop {
  /** Mean nanoseconds a GET of a plain C loop, which checks nothing and prefetches nothing, over so many GETs of uniformly random keys. */
  plainNs(gets: number): Promise<number>;
  stop(): Promise<void>;
}

function built(): string {
  const program = inRepository('build/region_loop');
  const sources = [inRepository('bench/micro/region_loop.c'), inRepository('bench/micro/rig.h')];
  const library = inRepository('build/native/libfarkv.a');
  execFileSync('make', ['-s', '-C', inRepository('native'), '../build/native/libfarkv.a'], { stdio: 'inherit' });
  const newest = Math.max(...[...sources, library].map((path) => statSync(path).mtimeMs));
  if ((statSync(program, { throwIfNoEntry: false })?.mtimeMs ?? 0) < newest) {
    execFileSync('gcc', ['-O2', '-D_GNU_SOURCE', '-o', program, sources[0] ?? '', library, '-pthread', '-ldl', '-lm'], { stdio: 'inherit' });
  }
  return program;
}

/** Resolves when its region is loaded. */
export async function regionLoop(keys: number, valueBytes: number, shards: number): Promise<RegionLoop> {
  const loop = new Spoken(built(), [String(keys), String(valueBytes), '0', String(shards), '-']);
  if ((await loop.heard()) !== 'ready') throw new Error('region_loop is another one than expected');
  return {
    plainNs: async (gets) => Number(await loop.ask(String(gets))),
    stop: () => loop.stop(),
  };
}
