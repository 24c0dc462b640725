/**
 * What keeps an adapter to its own keys, and to what it saw, and what keeps the addon from being loaded where it cannot
 * be, each with the test that notices.
 */
import { inFile } from './checks/in-file.mjs';

const keyv = (title) => ({ test: 'test/adapters/keyv.long.test.ts', title });
const session = (title) => ({ test: 'test/adapters/session.test.ts', title });

export const mutations = [
  ...inFile('adapters/prefixed-keys.ts', [
    [
      'adapters: clearing does not look at the prefix',
      keyv('clear() leaves what other namespaces, prefixes and programs have'),
      'batch: PAGE, prefix,',
      'batch: PAGE,',
    ],
  ]),
  ...inFile('adapters/keyv.ts', [
    [
      'adapters: clear() of one Keyv deletes what another has that shares its store',
      keyv('an adapter under Keyvs of two namespaces clears for neither, and lists for the last alone'),
      "    if (this.#assigned.size > 1) throw severalNamespaces('clear');\n",
      '',
    ],
  ]),
  ...inFile('adapters/session.ts', [
    [
      'adapters: touching a session writes whatever is there now',
      session('touch() neither brings back a destroyed session nor undoes what was set meanwhile'),
      'kv.compareAndSwap(keys.key(id), entry.version, json, {',
      'kv.put(keys.key(id), json, {',
    ],
  ]),
];
