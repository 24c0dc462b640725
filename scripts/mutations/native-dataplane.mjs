/** What must not be missing from native/dataplane, each with the C test that notices. */
import { by, inFile } from './checks/in-file.mjs';

const dataplane = by('dataplane');

export const mutations = [
  ...inFile('native/dataplane/loop.c', [
    [
      'dataplane: what came in a long turn is judged by the time of an earlier one',
      dataplane('a_time_to_live_is_judged_by_the_time_after_a_request_came_however_long_the_turn_takes'),
      '    w->wall_ms = fkv_wall_ms();\n    if (w->wall_ms >= w->expiry_ms)',
      '    if (w->wall_ms >= w->expiry_ms)',
    ],
  ]),
  ...inFile('native/dataplane/client.c', [
    [
      'dataplane: a client is not told why it was ended',
      by('dataplane_limits')('the_operator_and_the_next_connection_are_told_why_one_was_ended'),
      '    dedup_note_end(c->memory, (uint8_t)why);\n',
      '',
    ],
  ]),
  ...inFile('native/dataplane/read.c', [
    [
      'dataplane: a copy goes on though changes have fallen out of the log',
      by('move_copy')('more_changes_than_the_log_holds_make_the_copy_begin_anew_and_nothing_is_lost'),
      '        status = FKV_STALE_SEQUENCE;',
      '        place = change_log_begin(&s->log, now);',
    ],
  ]),
  ...inFile('native/dataplane/dedup.c', [
    [
      'dataplane: a retry is made again',
      dataplane('a_retry_is_answered_and_not_made_again'),
      '    if (sequence_of(e) == sequence) {',
      '    if (sequence_of(e) == sequence && status_of(e) == IN_PROGRESS) {',
    ],
    [
      'dataplane: a retry is made again by the next owner',
      by('dataplane_retry')('a_retry_of_what_an_earlier_owner_was_sent_is_indeterminate'),
      'had_owner ? now_ns + IDLE_NS : 0;',
      '0 * (now_ns + IDLE_NS + had_owner);',
    ],
  ]),
  ...inFile('native/dataplane/request.c', [
    [
      'dataplane: a client is ended for the LAYOUTs of many shards',
      by('dataplane_limits')('layouts_of_more_shards_than_the_quota_allows_requests_do_not_end_a_client'),
      'op *o = c->op_count - c->asides <= 2 *',
      'op *o = c->op_count <= 2 *',
    ],
    [
      'dataplane: a ticket allows everything',
      dataplane('a_ticket_allows_what_it_names'),
      'if ((c->ticket.flags & needed) != needed) return FKV_UNAUTHORIZED;',
      '(void)needed;',
    ],
    [
      'dataplane: every client may copy shards',
      by('move_copy')('a_ticket_of_a_client_does_not_copy'),
      'needed |= FKV_TICKET_COPY;',
      'needed |= 0;',
    ],
  ]),
  ...inFile('native/dataplane/memory.c', [
    [
      'dataplane: what is retired is deregistered at once',
      by('dataplane_shard')('a_retired_segment_stays_readable_while_leases_are_left_that_do_not_tell_of_it'),
      'if (s->lease_until_ns <= s->w->now_ns) {',
      'if (s->lease_until_ns <= UINT64_MAX) {',
    ],
  ]),
  ...inFile('native/dataplane/run.c', [
    [
      'dataplane: a change that is ready after the grant is made',
      by('dataplane_retry')('a_change_that_is_ready_after_the_grant_leaves_no_trace'),
      'bool late = fkv_now_ns() >= __atomic_load_n(&w->d->grant_until_ns, __ATOMIC_RELAXED);',
      'bool late = false;',
    ],
    [
      'dataplane: what arrived in a pause is answered by the time of the beginning of the turn',
      by('dataplane_shard')('what_arrives_while_the_owner_is_paused_past_its_lease_is_not_answered'),
      'lease that ran when the turn began. */\n    w->now_ns = fkv_now_ns();',
      'lease that ran when the turn began. */',
    ],
  ]),
  ...inFile('native/dataplane/run.c', [
    [
      'dataplane: a sealed shard takes changes',
      by('move_copy')('a_sealed_shard_is_read_and_not_changed_and_goes_on_when_it_is_not_to_move_after_all'),
      'if (o->shard->sealed_for) return',
      'if (false) return',
    ],
    [
      'dataplane: what changes while a shard is copied is not noted',
      by('move_copy')('what_changes_while_it_is_copied_comes_along'),
      '    change_log_note(&s->log, o->request.space, o->key, o->request.key_bytes);\n',
      '',
    ],
  ]),
  ...inFile('native/client/copy_page.c', [
    [
      'move: an entry that ends while it is copied leaves what the copy had',
      by('move_copy')('an_entry_that_ends_while_it_is_copied_leaves_nothing_older'),
      'if (!append(c, &w->entry, w->key, NULL) && c->failed == FKV_OK) c->failed = FKV_NO_MEMORY;',
      '',
    ],
  ]),
  ...inFile('native/table/change.c', [
    [
      'dataplane: an entry that moves gets a new version',
      by('move_copy')('a_copy_has_every_entry_with_its_version_flags_and_time_to_live'),
      'op->version ? op->version : fkv_version(',
      'false ? op->version : fkv_version(',
    ],
  ]),
];
