/** What must not be missing from the Redis gateway, each with the C test that notices. */
import { by, inFile } from './checks/in-file.mjs';

const parser = by('resp_parser');
const resp = by('resp');
const edit = by('resp_edit');
const walk = by('resp_walk');
const bounds = by('resp_bounds');
const hash = by('resp_hash');

export const mutations = [
  ...inFile('native/resp/parser.c', [
    [
      'gateway: the bytes of a command are not bounded',
      parser('a_command_beyond_the_bound_of_all_its_bytes_is_refused'),
      '    if (p->at - p->from + (size_t)n > RESP_COMMAND_MAX) return bad(p, "too big mbulk request");\n',
      '',
    ],
  ]),
  ...inFile('native/resp/hash_reads.c', [
    [
      'gateway: a damaged hash is believed',
      hash('damaged_hashes_are_answered_and_not_believed'),
      'if (s == FKV_OK && !fkv_count_fields(k->value, r->value_bytes, count)) s = FKV_WRONG_CODEC;',
      '(void)fkv_count_fields(k->value, r->value_bytes, count);',
    ],
    [
      'gateway: a string is read as a hash',
      hash('strings_are_no_hashes_and_hashes_no_strings'),
      '    if (s == FKV_OK && r->codec != FKV_CODEC_FIELDS) s = FKV_WRONG_CODEC;\n',
      '',
    ],
  ]),
  ...inFile('native/resp/hash.c', [
    [
      'gateway: fields of a command are not bounded',
      hash('fields_of_a_command_are_bounded'),
      '    if (bytes <= FKV_APPEND_MAX) return true;',
      '    return true;',
    ],
  ]),
  ...inFile('native/resp/strings.c', [
    [
      "gateway: a GET does not wait for its connection's change",
      resp('a_connection_sees_its_own_changes'),
      'if (!c->changing[mark_of(key.hash)] && get_at_once',
      'if (get_at_once',
    ],
  ]),
  ...inFile('native/resp/job.c', [
    [
      'gateway: two changes of one key are under way at once',
      resp('of_one_key_twice_in_a_command_the_last_value_stays'),
      'return !c->changing[k->mark] && !(j->work->changes && c->reading[k->mark]);',
      'return j->work->changes || !c->changing[k->mark];',
    ],
    [
      'gateway: a listing does not wait for the changes before it',
      walk('a_walk_sees_what_came_before_it_and_nothing_behind_it'),
      'if (j->work->walks) return c->calls == 0;',
      'if (j->work->walks) return true;',
    ],
    [
      'gateway: values that come larger than expected are kept',
      bounds('values_that_are_read_are_bounded_whatever_comes'),
      '    if (wanted && !k->large) {',
      '    k->large = 0;\n    if (wanted && !k->large) {',
    ],
    [
      'gateway: what a command keeps is not counted',
      bounds('values_that_commands_keep_are_bounded'),
      '    j->c->held += (size_t)k.n + bytes;\n',
      '',
    ],
    [
      'gateway: a call of a closed connection wakes nobody',
      bounds('a_busy_store_is_waited_for_when_only_closed_connections_have_calls'),
      '    list_append(&s->ready, &s->starved); /* whosever call it was */\n',
      '    if (!c->closed) list_append(&s->ready, &s->starved);\n',
    ],
  ]),
  ...inFile('native/resp/swap.c', [
    [
      'gateway: SET GET changes another entry than it has read',
      resp('a_set_that_looks_first_is_one_step'),
      '    j->step = STEP_READ;\n    return false;',
      '    return true;',
    ],
  ]),
  ...inFile('native/resp/calls.c', [
    [
      'gateway: what SETRANGE will make is not counted',
      edit('values_that_are_made_are_bounded'),
      'known > j->makes ? known : j->makes',
      'known',
    ],
  ]),
  ...inFile('native/resp/walk.c', [
    [
      'gateway: KEYS answers whatever there is',
      walk('keys_that_are_listed_are_bounded'),
      ' || resp_out_bytes(&w->keys) > KEYS_BYTES_MAX ||',
      ' ||',
    ],
  ]),
  ...inFile('native/resp/flush.c', [
    [
      'gateway: a flush passes over a key that the store did not take',
      walk('a_flush_deletes_every_key_that_there_was'),
      '    if (started == CALL_LATER) j->from = before;\n',
      '',
    ],
  ]),
  ...inFile('native/resp/set.c', [
    [
      'gateway: KEEPTTL does not say that the expiry stays',
      resp('keepttl_keeps_what_the_owner_has_and_calculates_nothing'),
      'if (what & SET_KEEPTTL) j->ask.flags = FKV_REQUEST_KEEP_EXPIRY;',
      '',
    ],
  ]),
  ...inFile('native/resp/server.c', [
    [
      'gateway: all connections together hold without bound',
      bounds('of_connections_that_hold_too_much_together_the_largest_is_closed'),
      'if (holds_too_much(s)) close_largest(s);',
      '',
    ],
    [
      'gateway: for what a closed connection holds others are closed',
      bounds('for_what_a_closed_connection_still_holds_no_other_is_closed'),
      'return s->bytes - (s->leaving < most ? s->leaving : most) > most;',
      'return s->bytes > most;',
    ],
  ]),
  ...inFile('native/resp/job.c', [
    [
      'gateway: a command of many keys is one step',
      bounds('a_command_of_many_keys_lets_others_have_their_turn'),
      'if (left == 0) return true;',
      '',
    ],
  ]),
  ...inFile('native/resp/commands.c', [
    [
      'gateway: what follows a refused MULTI is run',
      resp('after_a_refused_multi_nothing_is_run_until_its_end'),
      'if (!c->refuses) return false;',
      'return false;',
    ],
  ]),
  ...inFile('native/resp/about.c', [
    [
      'gateway: what a browser sends is run',
      resp('http_ends_the_connection_before_its_body_is_run'),
      'c->broken = true;',
      'wrong_arguments(c, "post");',
    ],
  ]),
  ...inFile('native/resp/clients.c', [
    [
      'gateway: clients are listed however many there are',
      resp('what_a_list_of_clients_costs_is_bounded'),
      'c->server->stats.connections > LIST_MAX',
      'c->server->stats.connections > UINT32_MAX',
    ],
    [
      'gateway: a client that has gone is listed with the descriptor of another',
      resp('clients_are_listed_by_name_and_those_that_have_gone_are_not'),
      'if (!one->closed) n +=',
      'n +=',
    ],
    [
      'gateway: names of settings are not bounded',
      resp('what_a_question_for_settings_costs_is_bounded'),
      'i - 2 == SETTINGS_MAX || ',
      '',
    ],
  ]),
  ...inFile('native/resp/connection.c', [
    [
      'gateway: commands that have ended behind a slow one are not counted',
      bounds('commands_that_have_ended_behind_one_that_has_not_are_bounded'),
      'if (c->queued > QUEUED_MAX || !list_empty(&c->again) || walks(c)) return false;',
      'if (!list_empty(&c->again) || walks(c)) return false;',
    ],
    [
      'gateway: what is behind a listing is run before its end',
      walk('a_walk_sees_what_came_before_it_and_nothing_behind_it'),
      ' || walks(c)) return false;',
      ') return false;',
    ],
    [
      'gateway: a reply that had no memory is sent in part',
      resp('a_reply_without_memory_ends_the_connection_and_no_part_of_it_is_sent'),
      '        if (c->out.failed) { /* its last reply is not whole: no byte of it may go out */\n            c->broken = true;\n            break;\n        }\n',
      '',
    ],
    [
      'gateway: replies that nobody reads are kept without bound',
      bounds('a_client_that_does_not_read_is_held_back'),
      'if (c->ending || c->broken || job_full(c, 0)) return false;',
      'if (c->ending || c->broken) return false;',
    ],
  ]),
];
