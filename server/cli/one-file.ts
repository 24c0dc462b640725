/** The entry of the one-file executable: no file stands between its own name and the command (scripts/make-binary.mjs). */
import './first-process.js';
import { main } from './run.js';

void main(process.argv.slice(2));
