#!/usr/bin/env node
/** The program `farkv` of the package, which npm's bin directory links to. */
import { main } from './run.js';

await main(process.argv.slice(2));
