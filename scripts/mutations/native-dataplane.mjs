/** What must not be missing from native/dataplane, each with the C test that notices. */
import { by, inFile } from './checks/in-file.mjs';

const dataplane = by('dataplane');
const scan = by('dataplane_scan');
const life = by('dataplane_life');

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
      'scan: the owner does not look at the prefix',
      scan('a_tally_counts_what_a_scan_lists_and_a_prefix_says_of_which_keys'),
      'if (out->of && !is_asked_for(out->of, e)) return;',
      '',
    ],
    [
      'scan: a tally counts keys that were not asked for',
      scan('a_tally_counts_what_a_scan_lists_and_a_prefix_says_of_which_keys'),
      'out->entries += is_asked_for(out->of, e);',
      'out->entries++;',
    ],
    [
      'dataplane: a copy goes on though changes have fallen out of the log',
      by('move_copy')('more_changes_than_the_log_holds_make_the_copy_begin_anew_and_nothing_is_lost'),
      '        status = FKV_STALE_SEQUENCE;',
      '        place = change_log_begin(&s->log, now);',
    ],
  ]),
  ...inFile('native/dataplane/read.c', [
    [
      'dataplane: a scan of every namespace does not say whose an entry is',
      scan('a_scan_of_every_namespace_says_whose_each_entry_is'),
      '.space = out->spaces ? e->space : 0 };',
      '.space = 0 };',
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
      'dataplane: a client has no quota',
      life('beyond_its_quota_a_client_is_told_to_come_later'),
      ': c->op_count - c->asides > w->d->c.client_quota) return FKV_BUSY;',
      ': false) return FKV_BUSY;',
    ],
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
  ...inFile('native/dataplane/latency.c', [
    [
      'dataplane: latencies of all kinds are one',
      dataplane('each_kind_of_request_has_its_own_latencies_and_what_was_refused_has_none'),
      'fkv_ops[o->request.op].counted };',
      'FKV_OP_PUT };',
    ],
  ]),
  ...inFile('native/dataplane/memory.c', [
    [
      'dataplane: what is retired is deregistered at once',
      by('dataplane_shard')('a_retired_segment_stays_readable_while_leases_are_left_that_do_not_tell_of_it'),
      'if (s->lease_until_ns <= s->w->now_ns) {',
      'if (s->lease_until_ns <= UINT64_MAX) {',
    ],
    [
      'dataplane: everything waits for huge pages',
      by('dataplane_growth')('while_huge_pages_are_made_for_one_shard_others_get_their_memory'),
      '        helper_post(&d->huge, &asked->job);',
      '        helper_post(&d->memory, &asked->job);',
    ],
    [
      'dataplane: huge pages are asked for again however long they took',
      by('dataplane_growth')('after_the_kernel_took_long_for_huge_pages_it_is_left_alone_for_a_while'),
      'now_ns + HUGE_REST * waited_ns;',
      'now_ns;',
    ],
    [
      'dataplane: huge pages that could not be made stay counted',
      by('dataplane_growth')('what_could_not_be_made_of_huge_pages_counts_no_longer_against_the_bound'),
      '    count_freed(d, counted);\n    if (e == -EMFILE)',
      '    if (e == 0) count_freed(d, counted);\n    if (e == -EMFILE)',
    ],
  ]),
  ...inFile('native/dataplane/wait.c', [
    [
      'dataplane: waits for memory are not counted',
      by('dataplane_growth')('changes_that_come_before_their_memory_are_counted_with_the_longest_wait'),
      'else if (o->starved_ns == 0 && !shard_hands(o->shard)) o->starved_ns = o->worker->now_ns;',
      '',
    ],
  ]),
  ...inFile('native/dataplane/loop.c', [
    [
      'dataplane: what was refused counts against the quota until the turn ends',
      by('dataplane_limits')('what_is_refused_leaves_room_for_what_comes_behind_it'),
      '            run_answers(w);',
      '            (void)0;',
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
  ...inFile('native/dataplane/life.c', [
    [
      'dataplane: the log of a move that was called off is kept while nothing changes',
      by('move_end')('the_log_of_a_move_that_was_called_off_is_given_up_though_nothing_changes'),
      '        if (s->log.ring) change_log_rest(&s->log, w->now_ns);\n',
      '',
    ],
    [
      'dataplane: nobody wakes for the log of a move that was called off',
      by('move_end')('the_log_of_a_move_that_was_called_off_is_given_up_though_nothing_changes'),
      '        if (s->state != SHARD_CLOSING) at = min_u64(at, change_log_idle_ns(&s->log));\n',
      '',
    ],
    [
      'dataplane: the doubt about an earlier owner begins when a shard is opened',
      by('dataplane_retry')('a_shard_that_was_open_for_long_before_it_is_served_takes_no_retry_either'),
      's->state == SHARD_OPEN && !s->copy) status',
      's->state == SHARD_CLOSING) status',
    ],
    [
      'dataplane: a paused shard is left alone before its leases are over',
      by('move_copy')(
        'a_paused_shard_answers_nothing_is_left_alone_when_its_leases_are_over_and_goes_on_with_all_it_had',
      ),
      'if (s->pausing && quiet(w, s) && all_committed(s)) end_call',
      'if (s->pausing && all_committed(s)) end_call',
    ],
  ]),
  ...inFile('native/client/copy.c', [
    [
      'move: a seal for another copy ends this one',
      by('move_copy')('a_seal_for_another_copy_does_not_end_this_one'),
      'if (c->answer.reply.expiry_ms != c->config.copy)',
      'if (c->config.copy == 0)',
    ],
    [
      'move: a copy that is cancelled says that it has ended while the table has what it lent',
      by('move_end')(
        'a_copy_that_is_cancelled_while_the_table_has_what_it_lent_ends_only_then_and_nobody_waits_for_it',
      ),
      '    if (ended) w->ended(w->ctx, FKV_OK, NULL);',
      '    if (!ended) c->waiters = w->next;\n    w->ended(w->ctx, FKV_OK, NULL);',
    ],
  ]),
  ...inFile('native/client/copy_page.c', [
    [
      'move: an entry that ends while it is copied leaves what the copy had',
      by('move_copy')('an_entry_that_ends_while_it_is_copied_leaves_nothing_older'),
      'if (!append(c, &w->entry, w->key, NULL) && c->failed == FKV_OK) c->failed = FKV_NO_MEMORY;',
      '',
    ],
    [
      "move: a copy may end while the owner's thread is about to ring for it",
      by('move_wake')('a_copy_does_not_end_while_it_is_rung_for'),
      '    pthread_mutex_lock(&c->lock);\n    pthread_mutex_unlock(&c->lock);\n',
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
