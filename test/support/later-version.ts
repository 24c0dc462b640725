/**
 * Makes the process that loads it first (`node --import .../later-version.js`) a later version of farkv: one that is
 * built from the same sources and knows one more format of the metadata. So the product has no switch for it. Must not
 * import the product: what is loaded before the hooks stays as it is.
 */
import { register } from 'node:module';

/** Module hooks, in the thread in which Node.js runs them. */
const hooks = `
export async function load(url, context, next) {
  const loaded = await next(url, context);
  if (!url.endsWith('/core/metadata/format.js')) return loaded;
  const source = String(loaded.source).replace(/FORMAT_NEWEST = (\\d+);/, (_, newest) => 'FORMAT_NEWEST = ' + (Number(newest) + 1) + ';');
  if (source === String(loaded.source)) throw new Error('format.js does not say which format is the newest');
  return { ...loaded, source };
}`;

register(`data:text/javascript,${encodeURIComponent(hooks)}`);
