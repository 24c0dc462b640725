/**
 * What keeps an adapter to its own keys, and to what it saw, and what keeps the addon from being loaded where it cannot
 * be, each with the test that notices.
 */
import { inFile } from './checks/in-file.mjs';

const keyv = (title) => ({ test: 'test/adapters/keyv.long.test.ts', title });
const shared = (title) => ({ test: 'test/adapters/prefixed-keys.test.ts', title });
const runtime = (title) => ({ test: 'native/runtime.test.ts', title });
const unstorage = (title) => ({ test: 'test/adapters/unstorage.test.ts', title });
const channel = (title) => ({ test: 'test/adapters/call-channel.test.ts', title });
const session = (title) => ({ test: 'test/adapters/session.test.ts', title });

export const mutations = [
  ...inFile('adapters/prefixed-keys.ts', [
    [
      'adapters: a prefix may be the beginning of another',
      keyv('a prefix that could be the beginning of another is refused'),
      " || prefix.includes(':')",
      '',
    ],
    [
      'adapters: clearing does not look at the prefix',
      keyv('clear() leaves what other namespaces, prefixes and programs have'),
      'batch: PAGE, prefix,',
      'batch: PAGE,',
    ],
    [
      'adapters: clearing deletes whatever version is there',
      shared('clear() keeps an entry that is written after the scan saw it'),
      'kv.compareAndDelete(key, version)',
      'kv.delete(key)',
    ],
  ]),
  ...inFile('adapters/connection.ts', [
    [
      'adapters: a failed attempt to connect is the last one',
      keyv('an adapter whose server is not there yet reports it, and connects when it is'),
      '      this.#connecting = undefined;\n      throw error;',
      '      throw error;',
    ],
    [
      'adapters: what is connected while the adapter closes stays open',
      shared('a connection that is closed while it is made ends too'),
      'await client?.close();',
      '',
    ],
  ]),
  ...inFile('adapters/keyv.ts', [
    [
      'adapters: clear() of one Keyv deletes what another has that shares its store',
      keyv('an adapter under Keyvs of two namespaces clears for neither, and lists for the last alone'),
      "    if (this.#assigned.size > 1) throw severalNamespaces('clear');\n",
      '',
    ],
    [
      'adapters: iterator() of one Keyv lists what another has that shares its store',
      keyv('an adapter under Keyvs of two namespaces clears for neither, and lists for the last alone'),
      "    if (own !== within(this.#namespace)) throw severalNamespaces('iterator');\n",
      '',
    ],
  ]),
  ...inFile('adapters/time-to-live.ts', [
    [
      'adapters: a time to live is longer than an owner takes',
      unstorage('times to live of any length are taken'),
      'Math.min(TTL_MAX, ',
      'Math.min(2 * TTL_MAX, ',
    ],
  ]),
  ...inFile('adapters/session.ts', [
    [
      'adapters: a session whose cookie ends with the browser is destroyed',
      session('a cookie whose `expires` is false ends with the browser: the session has the default end'),
      ' || expires === false',
      '',
    ],
    [
      'adapters: touching a session writes whatever is there now',
      session('touch() neither brings back a destroyed session nor undoes what was set meanwhile'),
      'kv.compareAndSwap(keys.key(id), entry.version, json, {',
      'kv.put(keys.key(id), json, {',
    ],
  ]),
  ...inFile('client/call-channel.ts', [
    [
      'calls: one that failed is told as one that has an answer',
      channel('the end of a call is told with what it resolved with, or why it failed'),
      '  message.error = reason;\n',
      '',
    ],
  ]),
  ...inFile('client/keyspace.ts', [
    [
      'calls: a swap is told of under no name of its own',
      channel('every call about keys is told, by its name'),
      "this.#swap('compareAndDelete', key,",
      "this.#swap('compareAndSwap', key,",
    ],
  ]),
  ...inFile('adapters/opentelemetry.ts', [
    [
      'calls: a failed call is a span without a fault',
      {
        test: 'test/adapters/opentelemetry.test.ts',
        title: 'a call is a span of the context in which it was made, until that is ended',
      },
      '      span.setStatus({ code: codes.ERROR, message: text });\n',
      '',
    ],
  ]),
  ...inFile('native/runtime.ts', [
    [
      'runtime: Bun is taken for Node.js',
      runtime("import('farkv') says under Bun and Deno that Node.js is needed"),
      'if (bun !== undefined)',
      'if (bun === null)',
    ],
    [
      'runtime: Deno is taken for Node.js',
      runtime("import('farkv') says under Bun and Deno that Node.js is needed"),
      'Deno === undefined ?',
      'Deno !== null ?',
    ],
    [
      'runtime: the package of a bundle is taken for farkv',
      runtime('a module is in farkv, in a bundle of another package, or in one of none'),
      "name === 'farkv' ? dir : undefined",
      'name !== undefined ? dir : undefined',
    ],
  ]),
];
