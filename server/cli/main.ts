#!/usr/bin/env node
/** The program `farkv` of the package, which npm's bin directory links to. */
import './first-process.js';

// A static import would be loaded, with all that it imports, before first-process.js runs.
const { main } = await import('./run.js').catch((error: unknown) => {
  const { code, message } = Object(error) as { readonly code?: unknown; readonly message?: unknown };
  if (code !== 'ERR_ADDON') throw error;
  // farkv cannot run here at all, as under another runtime than Node.js.
  process.stderr.write(`farkv: ${String(message)}\n`);
  process.exit(1);
});
await main(process.argv.slice(2));
