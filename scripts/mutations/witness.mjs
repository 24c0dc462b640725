/** What keeps shards and copies away from servers that vote and keep no values (core/metadata/placement.ts). */
import { inFile } from './checks/in-file.mjs';

const witness = (title) => ({ test: 'core/metadata/witness.test.ts', title });
const DEAD = witness('a dead owner loses its shards to servers that keep values, or to none');
const everybody = '[...state.members.values()]';

export const mutations = [
  ...inFile('core/metadata/leader-policy.ts', [
    ['witness: it takes the shards of the dead', DEAD, 'return keepersOf(state)', `return ${everybody}`],
  ]),
];
