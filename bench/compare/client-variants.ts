/**
 * Copies of the SDK in one process that differ in one place, to measure what that place costs: each has modules of its
 * own, so V8 compiles it by itself, and its calls see one class of client. client-variant-hooks.ts loads them.
 */
import { register } from 'node:module';
import type * as CallLoops from './call-loops.js';

export type { CallLoop, CallName } from './call-loops.js';

export const VARIANTS = ['bare', 'again', 'guarded', 'timed'] as const;
/**
 * `bare`: the SDK without the question whether somebody listens. `again`: the same once more; what it differs from
 * `bare` is the error of the measurement. `guarded`: the SDK as it is. `timed`: that with `latencies`.
 */
export type Variant = (typeof VARIANTS)[number];

let registered = false;

export async function loadVariant(variant: Variant): Promise<typeof CallLoops> {
  if (!registered) register('./client-variant-hooks.js', import.meta.url);
  registered = true;
  return (await import(new URL(`./call-loops.js?${variant}`, import.meta.url).href)) as typeof CallLoops;
}
