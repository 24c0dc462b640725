/**
 * What must not be missing where a server stands still: its clients notice it, and go on with who takes its shards over.
 * Each with the test that notices.
 */
import { by, inFile } from './checks/in-file.mjs';

const silent = by('session_silent');
const control = (title) => ({ test: 'client/control-connection.test.ts', title });
const whole = (call) => ({
  test: 'test/integration/stands-still.long.test.ts',
  title: `a lone ${call} of a shard whose owner stands still is answered by the next one`,
});

export const mutations = [
  ...inFile('native/client/session/silent.c', [
    [
      'still: an owner that answers others counts as silent',
      silent('an_owner_that_answers_others_is_not_silent'),
      'o->silent = !heard && ',
      'o->silent = ',
    ],
    [
      'still: a silent owner is told again and again',
      silent('an_owner_that_answers_nothing_is_told_once_until_it_answers'),
      'if (!o->silent || was_silent) return;',
      'if (!o->silent) return;',
    ],
    [
      'still: clients that ask nothing wake up to look',
      silent('an_owner_that_is_asked_nothing_is_not_silent'),
      'if (s->outstanding) timer_set',
      'timer_set',
    ],
  ]),
  ...inFile('native/client/session/owner.c', [
    [
      'still: what was sent to an owner that was replaced waits for it for seconds',
      silent('what_was_sent_to_an_owner_that_stood_still_goes_to_the_next_one_when_that_knows_of_it'),
      '(s->replicated ? OWNER_MOVED_MS : OWNER_LINGER_MS)',
      'OWNER_LINGER_MS',
    ],
    [
      'still: what was sent to a silent owner waits though it was replaced',
      silent('what_was_sent_to_an_owner_that_stood_still_goes_to_the_next_one_when_that_knows_of_it'),
      ' && !(s->replicated && o->silent)',
      '',
    ],
    [
      'still: an owner that was replaced is not waited for though the next one knows nothing',
      silent('what_was_sent_waits_for_an_owner_that_was_replaced_by_one_that_does_not_know_of_it'),
      's->replicated && o->silent',
      'o->silent',
    ],
    [
      'still: an owner with other shards keeps what was sent to it of one that it has lost',
      silent('an_owner_that_stands_still_and_lost_one_of_its_shards_is_connected_anew'),
      'if (waits_in_vain(o)) owner_drop(o, FKV_TIMEOUT);',
      '(void)waits_in_vain;',
    ],
    [
      'still: an owner that lost a shard loses its connection',
      silent('an_owner_that_lost_a_shard_of_which_it_owes_nothing_is_kept'),
      'if (waits_in_vain(o)) owner_drop(o, FKV_TIMEOUT);',
      'if (waits_in_vain(o) || o->sent_count) owner_drop(o, FKV_TIMEOUT);',
    ],
  ]),
  ...inFile('client/control-connection.ts', [
    [
      'still: a server that does not answer a ping is kept',
      control('a server that does not answer a probe is left for another one'),
      "      this.end(new FarkvError('ERR_TIMEOUT', `no answer to a ping within ${PROBE_MS} ms`));\n",
      '',
    ],
    [
      'still: a server that was left is dialed again before the others',
      control('a server that does not answer a probe is left for another one'),
      "(this.#servers.indexOf(this.#tried ?? '') + 1) % this.#servers.length",
      '0',
    ],
    [
      'still: a server that answers a ping is left',
      control('a server that answers a probe is kept'),
      '      if (connection.heardAt > since) return;\n',
      '',
    ],
  ]),
  ...inFile('core/protocol/client-map.ts', [
    [
      'still: clients are not told that copies know of changes',
      { test: 'core/protocol/client-map.test.ts', title: 'clients of a replicated tenant are told so, and no others' },
      "policies?.[tenant]?.level ?? 'cache') !== 'cache'",
      "policies?.[tenant]?.level ?? 'cache') === 'none'",
    ],
  ]),
  ...inFile('client/cluster.ts', [
    [
      'still: the server of the map is not suspected with the silent one',
      whole('put'),
      '      this.#control.probe();\n',
      '',
    ],
  ]),
];
