/** The entry of the one-file executable: no file stands between its own name and the command (scripts/make-binary.mjs). */
import './first-process.js';
import { main } from './run.js';

// The executable passes it over (execArgvExtension in scripts/make-binary.mjs), a worker thread with options of its own
// does not: it would run foreign code inside of farkv.
delete process.env.NODE_OPTIONS;
void main(process.argv.slice(2));
