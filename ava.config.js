export default {
  files: ['dist/**/*.test.js'],
  workerThreads: false,
  // What a client's slab gives back is poisoned, so that a value that was held too short is seen
  // (client/value-memory.ts).
  environmentVariables: { FARKV_POISON_SLABS: '1' },
  timeout: '5m',
  // One file at a time, and one test of it; scripts/rerun.mjs runs two AVAs at a time.
  serial: true,
  // Nothing is kept of the run before: a file that failed would come first.
  cache: false,
};
