/** Builds and runs bench/micro/region_loop.c: the floor under a GET over shared memory on this machine. */
import { execFile, execFileSync } from 'node:child_process';
import { existsSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

export interface RegionLoop {
  /** A plain C loop: no checks. */
  readonly plainNs: number;
  /** The native GET, without JavaScript. */
  readonly directNs: number;
  readonly groupNs: number;
}

function root(): string {
  let dir = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(dir, 'package.json'))) dir = dirname(dir);
  return dir;
}

function built(): string {
  const program = join(root(), 'build/region_loop');
  const source = join(root(), 'bench/micro/region_loop.c');
  const library = join(root(), 'build/native/libfarkv.a');
  execFileSync('make', ['-s', '-C', join(root(), 'native'), 'all'], { stdio: 'inherit' });
  const newest = Math.max(statSync(source).mtimeMs, statSync(library).mtimeMs);
  if (!existsSync(program) || statSync(program).mtimeMs < newest) {
    execFileSync('gcc', ['-O2', '-D_GNU_SOURCE', '-o', program, source, library, '-pthread', '-ldl', '-lm'], { stdio: 'inherit' });
  }
  return program;
}

const figure = (text: string, name: string): number => {
  const found = new RegExp(`^\\s*${name}\\s+([\\d.]+)`, 'm').exec(text)?.[1];
  if (found === undefined) throw new Error(`region_loop printed no ${name}: ${text}`);
  return Number(found);
};

/** A function that measures once, two seconds for each loop. */
export function regionLoop(keys: number, valueBytes: number): () => Promise<RegionLoop> {
  const program = built();
  return async () => {
    const { stdout } = await promisify(execFile)(program, [String(keys), String(valueBytes), '2']);
    return { plainNs: figure(stdout, 'plain'), directNs: figure(stdout, 'direct'), groupNs: figure(stdout, 'group') };
  };
}
