/**
 * What must not be missing from native/client/lookup, native/client/session and the shm provider, each with the C test
 * that notices.
 */
import { by, inFile } from './checks/in-file.mjs';

const lookup = by('lookup');
const lease = by('lookup_lease');
const direct = by('lookup_direct');
const group = by('lookup_group');
const index = by('lookup_index');
const locations = by('lookup_locations');
const follow = by('lookup_follow');
const quota = by('session_quota');
const session = by('session');
const owner = by('session_owner');
const shm = by('fabric_shm');
const merge = by('lookup_merge');
const absent = by('absent');

export const mutations = [
  ...inFile('native/client/session/absent.c', [
    [
      'session: an owner whose addresses failed once is absent',
      absent('one_round_of_addresses_that_fail_fails_nothing'),
      'o->in_vain >= TRIES',
      'o->in_vain > 0',
    ],
  ]),
  // ---------------------------------------------------------------- buckets that were split or merged
  ...inFile('native/client/lookup/get.c', [
    [
      'lookup: merge: a miss in a settling bucket is believed at once',
      merge('slots_of_before_a_merge_with_the_word_of_after_it_make_no_miss'),
      '    if (s == FKV_BUCKET_AGAIN) {',
      '    if (s == FKV_BUCKET_AGAIN) return true;\n    if (s == FKV_BUCKET_AGAIN) {',
    ],
    [
      'lookup: merge: buckets may send a GET to each other for ever',
      merge('buckets_that_send_a_reader_to_each_other_end_at_the_owner'),
      'if (++g->steps <= FKV_BUCKET_STEPS) {',
      'if (++g->steps <= 5 * FKV_BUCKET_STEPS) {',
    ],
  ]),
  ...inFile('native/client/lookup/direct.c', [
    [
      'direct: merge: a miss in a settling bucket is believed at once',
      merge('a_look_in_place_finds_what_a_merge_moved'),
      'if (state == FKV_BUCKET_HERE || saw_settling) return',
      'if (state == FKV_BUCKET_HERE || !saw_settling) return',
    ],
    [
      'direct: merge: a layout whose buckets send a look to each other is not asked for again',
      merge('buckets_that_send_a_reader_to_each_other_end_a_look_in_place'),
      '    sh->outdated = true;\n    return LOOK_LATER;',
      '    return LOOK_LATER;',
    ],
  ]),
  ...inFile('native/client/lookup/shard.c', [
    [
      'lookup: merge: the index is READ by an outdated layout when the lease of before is over',
      merge('a_client_that_comes_back_reads_nothing_by_an_outdated_layout'),
      'if (lease == SHARD_READY && now >= sh->index_until) return',
      'if (lease == SHARD_READY && sh->index_until == 1) return',
    ],
    [
      'lookup: merge: no index READ while the layout is asked for',
      merge('under_the_lease_of_before_the_index_is_read_while_the_layout_is_asked_for'),
      'if (lease == SHARD_READY && now >= sh->index_until) return',
      'if (lease == SHARD_READY) return',
    ],
  ]),
  ...inFile('native/table/reader.h', [
    [
      'lookup: merge: a client goes nowhere from a merged bucket',
      merge('a_client_that_knows_too_many_buckets_goes_where_they_were_merged'),
      'if (fkv_bucket_marks(word0) & FKV_BUCKET_MERGED) {',
      'if (number == UINT32_MAX) {',
    ],
  ]),
  // ---------------------------------------------------------------- what a GET may be answered under
  ...inFile('native/client/lookup/get.c', [
    [
      'lookup: the lease is compared with the time before the READ',
      lease('an_old_value_is_not_returned_after_the_lease_has_run_out'),
      '!lease_good(g, now)) late(g);',
      '!lease_good(g, g->started_ns)) late(g);',
    ],
    [
      'lookup: a GET may take as long as it likes',
      lookup('a_get_that_took_longer_than_its_life_is_discarded'),
      'now - g->started_ns > fkv_get_life_ns(bytes) || ',
      '',
    ],
    [
      'lookup: a lease of another incarnation covers an old layout',
      lease('a_read_by_an_old_layout_is_not_covered_by_a_lease_of_the_next_incarnation'),
      'return g->layout->incarnation == sh->lease_incarnation && now',
      'return now',
    ],
    [
      'lookup: whatever came along with a bucket is taken for the extent',
      follow('less_than_the_extent_is_none'),
      'if (g->landed_next != bytes) {',
      'if (g->landed_next == 0) {',
    ],
    [
      'lookup: what came along with a bucket need not be of the segment that the slot names',
      follow('a_get_whose_location_is_not_known_is_one_read'),
      '    g->state = GET_EXTENT;\n    g->tag = v->tag;\n',
      '    g->state = GET_EXTENT;\n',
    ],
  ]),
  ...inFile('native/client/lookup/direct.c', [
    [
      'direct: the lease is not compared after the copy',
      direct('nothing_is_answered_in_place_after_the_lease_has_run_out'),
      'if (__builtin_expect(now >= s->sh->lease_until, 0)) {',
      'if (s->sh->lease_until == 0) {',
    ],
    [
      'direct: a hit may take as long as it likes',
      direct('a_reader_that_is_held_up_in_the_middle_of_a_copy_does_it_again'),
      'return now - l->looked_ns <= fkv_get_life_ns(FKV_BUCKET_BYTES); }',
      'return now >= l->looked_ns; }',
    ],
    [
      'direct: what was late twice is believed',
      direct('a_reader_that_is_held_up_each_time_answers_nothing_in_place'),
      '        if (!in_time(l, now)) r = LOOK_LATER;\n',
      '',
    ],
    [
      'direct: a value that is dropped leaves its gap',
      group('an_expired_value_leaves_no_gap_and_costs_no_room'),
      'return __builtin_expect(dropped, 0) ? close_gaps(l, k, n, to, room, out, at, done) : used;',
      'return used;',
    ],
    [
      'direct: an expired value in a group is not noted',
      group('an_expired_value_leaves_no_gap_and_costs_no_room'),
      '        if (expired) *dropped = true;\n',
      '',
    ],
    [
      'direct: what did not fit beside a dropped value is believed',
      group('an_expired_value_leaves_no_gap_and_costs_no_room'),
      'if (!done[i] || out[i].status != FKV_BUFFER_TOO_SMALL) continue;',
      'continue;',
    ],
    [
      'direct: a lease that is over in a group is not noted',
      group('values_of_a_shard_whose_lease_is_over_leave_no_gap'),
      '        *dropped = true;\n        return false;\n',
      '        return false;\n',
    ],
    [
      'direct: a group that is late keeps its room',
      group('a_group_that_is_late_twice_takes_no_room'),
      'bool dropped = !good;',
      'bool dropped = false;',
    ],
  ]),
  // ---------------------------------------------------------------- changes
  ...inFile('native/client/session/request.c', [
    [
      'session: a cancelled change that was sent is said to have had no effect',
      session('a_change_that_was_sent_and_is_given_up_is_indeterminate_whatever_the_reason'),
      'if (r->sent_before && fkv_op_is(r->head.op, FKV_CHANGES)) return FKV_STALE_SEQUENCE;',
      'if (r->sent_before && fkv_op_is(r->head.op, FKV_CHANGES)) return why == FKV_TIMEOUT ? FKV_STALE_SEQUENCE : why;',
    ],
    [
      'session: a change that is sent again does not say so',
      session('a_change_without_answer_is_sent_again_as_the_same_after_a_new_connection'),
      'r->head.flags |= FKV_REQUEST_RETRY;',
      'r->head.flags |= 0;',
    ],
    [
      'session: more requests are sent than the owner allows',
      quota('no_more_requests_are_at_an_owner_than_its_welcome_allows'),
      '        if (o->at_owner >= o->quota && !fkv_op_is(r->head.op, FKV_ASIDE)) return;\n',
      '',
    ],
    [
      'session: what was given up is thought to have left its owner',
      quota('a_request_that_was_given_up_counts_until_its_reply_has_come'),
      'static void not_on_its_way(request *r) {\n',
      'static void not_on_its_way(request *r) {\n    r->owner->at_owner--;\n',
    ],
    [
      "session: time in which the event loop was held is taken for the owner's",
      quota('time_in_which_the_event_loop_was_held_does_not_count_once'),
      'uint64_t later = session_put_off(s, &r->held_ns);',
      'uint64_t later = 0;',
    ],
  ]),
  ...inFile('native/client/session/owner.c', [
    [
      'session: an owner that is flooded refuses the ticket',
      owner('an_owner_that_only_challenges_is_busy_and_is_asked_again'),
      'if (read_challenge(wc, &c)) return FKV_BUSY;',
      'if (read_challenge(wc, &c)) return FKV_UNAUTHORIZED;',
    ],
    [
      'session: an owner that is named no more is dropped with what is on its way to it',
      owner('what_is_on_its_way_to_an_owner_that_is_removed_is_answered_by_it'),
      'o->state == OWNER_UP && o->sent_count > 0 && ',
      'o->retry_now && ',
    ],
    [
      'session: an owner that is named no more may take for ever to answer',
      owner('an_owner_that_is_removed_while_operations_are_routed_to_it_is_gone_once'),
      '(s->replicated ? OWNER_MOVED_MS : OWNER_LINGER_MS) * MS',
      '(s->replicated ? OWNER_MOVED_MS : 1u << 30) * MS',
    ],
  ]),
  ...inFile('native/client/session/shards.c', [
    [
      'session: the window of sequences is not bounded',
      session('no_more_changes_are_outstanding_on_a_shard_than_its_owner_remembers'),
      'if (h->next_sequence - oldest->head.sequence >= FKV_DEDUP_WINDOW) return false;',
      '(void)oldest;',
    ],
  ]),
  // ---------------------------------------------------------------- the location cache
  ...inFile('native/client/lookup/get.c', [
    [
      'locations: what lies at a cached location is believed whatever state it is in',
      locations('after_a_change_the_index_is_asked_and_the_new_place_is_learned'),
      '    switch (fkv_extent_check(g->room.base, g->bytes, &want, &found)) {',
      '    if (g->guessed) ((fkv_extent *)(void *)g->room.base)->state = FKV_EXTENT_LIVE;\n    switch (fkv_extent_check(g->room.base, g->bytes, &want, &found)) {',
    ],
    [
      'locations: an extent of another key at a cached location is believed',
      locations('another_keys_extent_at_a_cached_location_is_not_returned'),
      '    fkv_wanted want = { .key = g->key, .key_bytes = g->key_bytes, .space = g->space, .tag = g->tag };\n    fkv_found found;',
      '    const fkv_extent *e = (const fkv_extent *)(const void *)g->room.base;\n' +
        '    fkv_wanted want = { .key = g->guessed ? (const void *)(e + 1) : g->key, .key_bytes = g->guessed ? e->key_bytes : g->key_bytes, .space = g->space, .tag = g->tag };\n    fkv_found found;',
    ],
    [
      'locations: used although the segment has another tag',
      locations('a_location_is_forgotten_when_its_segment_has_another_tag'),
      'if (!v || v->tag != at.tag ||\n',
      'if (!v ||\n',
    ],
    [
      'locations: used although a newer layout is known to exist',
      locations('no_location_is_guessed_while_the_layout_is_known_to_be_old'),
      'if (g->retries || l->shard[g->shard].outdated || !locations_guess',
      'if (g->retries || !locations_guess',
    ],
    [
      'locations: a failed guess counts against the life of the GET by the index',
      locations('a_stale_guess_takes_nothing_from_the_gets_life'),
      '    g->started_ns = lookup_polled_ns(l);\n    read_bucket(g);',
      '    read_bucket(g);',
    ],
  ]),
  ...inFile('native/client/lookup/locations.c', [
    [
      'locations: a key that always changes is guessed again and again',
      locations('a_key_that_changes_more_often_than_it_is_read_is_left_alone_until_it_rests'),
      'if (trust_of(e) < LOCATION_TRUSTED) {',
      'if (trust_of(e) > LOCATION_TRUST_MAX) {',
    ],
    [
      'locations: any entry gives way to a newcomer',
      locations('a_scan_replaces_only_what_was_used_once'),
      'if (i == 0 || use_of(&set[way]) < use_of(&set[least])) least = way;',
      'if (i == 0) least = way;',
    ],
    [
      'locations: what was popular once stays',
      locations('what_was_popular_long_ago_gives_way'),
      '(64 - AGE_EVERY_BITS) == 0) age(set_of(c, hash));',
      '(64 - AGE_EVERY_BITS) == 64) age(set_of(c, hash));',
    ],
  ]),
  ...inFile('native/client/lookup/layout.c', [
    [
      'lookup: a segment that finds no place is waited for',
      index('what_lies_in_a_segment_that_finds_no_place_is_asked_for'),
      'if (e == -EAGAIN || e == -ENOMEM) l->shard',
      'if (e == -ENOMEM) l->shard',
    ],
  ]),
  // ---------------------------------------------------------------- shm
  ...inFile('native/fabric/shm/poll.c', [
    [
      'shm: the flag "revoked" is not looked at',
      shm('a_deregistered_region_is_refused'),
      'if (atomic_load_explicit(&c->shared->revoked[!c->side][r->of->slot], memory_order_acquire)) r->status = FAB_REM_ACCESS_ERR;',
      '',
    ],
  ]),
  ...inFile('native/fabric/shm/cq.c', [
    [
      'shm: a bell is emptied however long it rings',
      by('fabric_shm_bell')('a_peer_that_rings_without_end_holds_nobody_up'),
      'k < BELL_READS && recv(',
      'recv(',
    ],
  ]),
];
