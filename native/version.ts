/** The version of this package, from its package.json. */
import { packageFile } from './package.js';

export const PACKAGE_VERSION = (JSON.parse(packageFile('package.json').toString()) as { readonly version: string })
  .version;
