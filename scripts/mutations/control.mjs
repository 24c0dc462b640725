/** What keeps each port of the control plane to those for whom it is, each with the test that notices. */
import { instead, never } from './checks/operators.mjs';
import { rows } from './checks/rows.mjs';

const test = (file) => (title) => ({ test: `server/control/${file}.test.ts`, title });
const plane = test('control-plane');
const peers = test('peer-plane');
const STRANGER =
  'a server that asks for its place is a stranger until it has one: it is told little, and may cost little';
const calls = (title) => ({ test: 'server/calls.test.ts', title });
const ends = (title) => ({ test: 'net/control-client.test.ts', title });

export const mutations = rows('control', {
  'server-at-client-port': [
    never(),
    plane('a server is told which port is for servers, and a Raft message ends its connection'),
  ],
  'joiner-told-directory': [instead('{ serverId, clusterId }', 'fields'), peers(STRANGER)],
  'removed-server-calls': [
    never(),
    calls('a server that was removed is answered nothing more on the connection that it has'),
  ],
  'client-at-server-port': [never(), peers('nobody but a server with the token of servers is let in')],
  'any-certificate': [
    instead('...TLS_ONLY', '...TLS_ONLY, rejectUnauthorized: false'),
    ends('the token is shown to nobody whose certificate is not trusted, and that is a refusal for a user'),
  ],
});
