// Files with processes of their own come first: the short ones at the end keep both processors busy.
const rank = (path) => ['/dist/test/', '/dist/native/'].findIndex((folder) => path.includes(folder)) >>> 0;

export default {
  files: ['dist/**/*.test.js'],
  workerThreads: false,
  // What a client's slab gives back is poisoned, so that a value that was held too short is seen
  // (client/value-memory.ts).
  environmentVariables: { FARKV_POISON_SLABS: '1' },
  timeout: '5m',
  // More than processors: many tests wait for servers that start, stop and time out.
  concurrency: 3,
  serial: true,
  sortTestFiles: (a, b) => rank(a) - rank(b) || (a < b ? -1 : 1),
};
