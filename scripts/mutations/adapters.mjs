/** What keeps an adapter to its own keys and to what it saw, each with the test that notices. */
import { drop, instead, without } from './checks/operators.mjs';
import { rows } from './checks/rows.mjs';

const keyv = (title) => ({ test: 'test/adapters/keyv.long.test.ts', title });
const session = (title) => ({ test: 'test/adapters/session.test.ts', title });

export const mutations = rows('adapters', {
  'clears-other-prefixes': [
    without('prefix'),
    keyv('clear() leaves what other namespaces, prefixes and programs have'),
  ],
  'clears-other-namespaces': [
    drop(),
    keyv('an adapter under Keyvs of two namespaces clears for neither, and lists for the last alone'),
  ],
  'touch-overwrites': [
    instead('compareAndSwap(keys.key(id), entry.version, json', 'put(keys.key(id), json'),
    session('touch() neither brings back a destroyed session nor undoes what was set meanwhile'),
  ],
});
