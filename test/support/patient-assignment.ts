/**
 * Lets the servers of a new cluster wait for each other by minutes, in the process that loads this first (`node --import
 * .../patient-assignment.js`). A busy machine may start one of them later than the product waits, and that one would
 * own no shard. No operator could choose a better time, so the product has no option for it.
 */
import { FIXED } from '../../server/config/settings.js';

Object.assign(FIXED, { assignAfterMs: 300_000 });
