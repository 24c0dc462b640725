/**
 * What must not be missing from client/: whose bytes a program is given, and for how long, each with the test that
 * notices.
 */
import { inFile } from './checks/in-file.mjs';

const bytes = (title) => ({ test: 'client/whose-bytes.test.ts', title });

const halves = {
  test: 'test/integration/half-pairs.test.ts',
  title: 'a value with half a pair is refused; with msgpack wherever in the value it is',
};

export const mutations = [
  // ---------------------------------------------------------------- where a value lies
  ...inFile('client/completion.ts', [
    [
      'client: bytes that a crossing did not write are taken for a value',
      bytes('bytes that the drain did not write are refused, and what it handed out before stays'),
      '  if (end > written) throw',
      '  if (end < 0) throw',
    ],
    [
      'client: a drain gives back what it handed out',
      bytes('a drained value that is not kept is poisoned when the drain is over, one that is kept stays'),
      'if (keep && value !== undefined) this.#slab.hold',
      'if (keep && value === null) this.#slab.hold',
    ],
  ]),
  ...inFile('client/batch-reads.ts', [
    [
      'client: keys of a getMany that wait for room lie in the memory of its caller',
      bytes(
        'keys of a batch that waits for its first place are not changed by what the caller does to them after the call',
      ),
      "keys[i] = ownKey(keys[i] ?? '');",
      "keys[i] = keys[i] ?? '';",
    ],
  ]),
  // ---------------------------------------------------------------- what is stored is what was given
  ...inFile('client/codec.ts', [
    [
      'client: a text with half a surrogate pair is stored as another',
      halves,
      "      checkText(value, 'the value');\n",
      '',
    ],
    [
      'client: MessagePack stores a text with half a surrogate pair as another',
      halves,
      '      checkTexts(value, bytes);\n',
      '',
    ],
  ]),
  // ---------------------------------------------------------------- for how long
  ...inFile('client/value-memory.ts', [
    [
      'client: a slab gives back what is held',
      bytes('what a slab gives back is poisoned, and what is held is never given back'),
      'const next = Math.max(from, this.#held);',
      'const next = from;',
    ],
    [
      'client: a slab takes back more than it lent',
      bytes('a slab refuses what lies outside of it, and what was never lent'),
      'if (!(next <= this.#used)) throw',
      'if (next < 0) throw',
    ],
  ]),
  ...inFile('client/operations.ts', [
    [
      'client: a value that a codec read is given back with what it decodes',
      bytes('values that a codec takes for itself while it decodes are not given back with what it decoded'),
      'slab.hold(offset + length);',
      'slab.lend(offset + length);',
    ],
  ]),
  ...inFile('client/batch-changes.ts', [
    [
      'client: values of a putMany that wait for room lie in the memory of its caller',
      bytes('what waits for room is not changed by what the caller does to its buffers after the call'),
      '  handed.values = handed.values.map((value) => Buffer.from(value));\n',
      '',
    ],
  ]),
];
