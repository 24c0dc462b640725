/**
 * Module hooks of Node.js for client-variants.ts: what a module of a variant imports of client/ is of that variant too,
 * and in those without the guard `isHeard` of client/call-channel.ts answers no, without a look.
 */
import type { LoadFnOutput, LoadHookContext, ResolveFnOutput, ResolveHookContext } from 'node:module';

const CLIENT = new URL('../../client/', import.meta.url).href;
const CHANNEL = `${CLIENT}call-channel.js`;
const UNGUARDED = ['?bare', '?again'];
const GUARD = 'return hasSubscribers() || isTimed();';

export async function resolve(
  specifier: string,
  context: ResolveHookContext,
  next: (specifier: string, context?: ResolveHookContext) => ResolveFnOutput | Promise<ResolveFnOutput>,
): Promise<ResolveFnOutput> {
  const resolved = await next(specifier, context);
  const variant = context.parentURL === undefined ? '' : new URL(context.parentURL).search;
  return variant !== '' && resolved.url.startsWith(CLIENT) ? { ...resolved, url: resolved.url + variant } : resolved;
}

export async function load(
  url: string,
  context: LoadHookContext,
  next: (url: string, context?: LoadHookContext) => LoadFnOutput | Promise<LoadFnOutput>,
): Promise<LoadFnOutput> {
  const loaded = await next(url, context);
  if (!UNGUARDED.some((variant) => url === CHANNEL + variant)) return loaded;
  const { source } = loaded;
  const text = typeof source === 'string' ? source : new TextDecoder().decode(source);
  const parts = text.split(GUARD);
  if (parts.length !== 2) throw new Error(`${url} does not have one '${GUARD}'`);
  return { ...loaded, source: parts.join('return false;') };
}
