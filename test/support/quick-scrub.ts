/**
 * Has copies look at all of their memory every second, in the process that loads this first (`node --import
 * .../quick-scrub.js`). The product does so every five minutes, and has no option for it.
 */
import { FIXED } from '../../server/config/settings.js';

Object.assign(FIXED, { scrubMs: 1000 });
