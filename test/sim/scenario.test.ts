/** Every trace in traces/ reads as it is written. FARKV_REWRITE_TRACES=1 rewrites them. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { runTrace } from './scenario.js';

// Traces are text, not compiled: they lie in the source tree.
const folder = join(import.meta.dirname, '../../../test/sim/traces');

for (const file of readdirSync(folder)) {
  test(`trace ${file}`, (t) => {
    const path = join(folder, file);
    const written = readFileSync(path, 'utf8');
    const now = runTrace(written);
    if (process.env.FARKV_REWRITE_TRACES !== undefined) writeFileSync(path, now);
    else t.is(now, written);
    t.pass();
  });
}
