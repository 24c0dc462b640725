/** What keeps files and names of others from opening anything, each with the test that notices. */
import { drop, instead, never } from './checks/operators.mjs';
import { rows } from './checks/rows.mjs';

const own = (title) => ({ test: 'net/private-directory.test.ts', title });
const names = (title) => ({ test: 'test/integration/secret-names.test.ts', title });

export const mutations = rows('hostile', {
  'link-of-another': [instead('path', '`${path}/.`'), own('a link is refused, wherever it leads')],
  'open-temporary-directory': [never('(s.mode'), own('what others may read, or is no directory, is refused')],
  'slash-in-a-name': [drop(), names('a name that is no plain name makes no certificate, and no file')],
});
