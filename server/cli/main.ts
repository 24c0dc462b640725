#!/usr/bin/env node
/** The program `farkv` of the package, which npm's bin directory links to. */
import './first-process.js';

// A static import would be loaded, with all that it imports, before first-process.js runs.
const { main } = await import('./run.js');
await main(process.argv.slice(2));
