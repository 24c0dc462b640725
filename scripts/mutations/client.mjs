/**
 * What must not be missing from client/: whose bytes a program is given, and for how long; from which cluster. Each with
 * the test that notices.
 */
import { drop, instead, never, unwrap } from './checks/operators.mjs';
import { rows } from './checks/rows.mjs';

const bytes = (title) => ({ test: 'client/whose-bytes.test.ts', title });
const stranger = (by) => ({
  test: 'client/control-connection.test.ts',
  title: `nothing is taken of a server whose cluster is refused by ${by}`,
});
const halves = {
  test: 'test/integration/half-pairs.test.ts',
  title: 'a value with half a pair is refused; with msgpack wherever in the value it is',
};
const stored = {
  test: 'client/codec-and-scan.test.ts',
  title: 'msgpack values come back as they were; another codec refuses them; buffer reads their bytes',
};

export const mutations = rows('client', {
  'unwritten-bytes': [
    never(),
    bytes('bytes that the drain did not write are refused, and what it handed out before stays'),
  ],
  'drained-given-back': [
    never('value !== undefined'),
    bytes('a drained value that is not kept is poisoned when the drain is over, one that is kept stays'),
  ],
  'keys-of-the-caller': [
    unwrap('ownKey'),
    bytes(
      'keys of a batch that waits for its first place are not changed by what the caller does to them after the call',
    ),
  ],
  'half-pair': [drop(), halves],
  'held-given-back': [
    unwrap('Math.max'),
    bytes('what a slab gives back is poisoned, and what is held is never given back'),
  ],
  'decoded-given-back': [
    instead('hold', 'lend'),
    bytes('values that a codec takes for itself while it decodes are not given back with what it decoded'),
  ],
  'values-of-the-caller': [
    drop(),
    bytes('what waits for room is not changed by what the caller does to its buffers after the call'),
  ],
  'another-codec': [never(), stored],
  'ticket-of-a-stranger': [
    drop(),
    {
      test: 'test/integration/sdk-failures.long.test.ts',
      title: "a client whose cluster is gone is told so by every call: the next one's map is older",
    },
  ],
  'welcome-of-a-stranger': [drop(), stranger('the welcome')],
  'map-of-a-stranger': [drop(), stranger('the first part of the map')],
});
