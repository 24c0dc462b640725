/**
 * What must not be missing from native/client/lookup, native/client/session and the shm provider, each with the C test
 * that notices.
 */
import { by, inFile } from './checks/in-file.mjs';

const lookup = by('lookup');
const lease = by('lookup_lease');
const direct = by('lookup_direct');
const locations = by('lookup_locations');
const quota = by('session_quota');
const session = by('session');
const shm = by('fabric_shm');
const merge = by('lookup_merge');

export const mutations = [
  // ---------------------------------------------------------------- buckets that were split or merged
  ...inFile('native/client/lookup/get.c', [
    [
      'lookup: merge: a miss in a settling bucket is believed at once',
      merge('slots_of_before_a_merge_with_the_word_of_after_it_make_no_miss'),
      '    if (s == FKV_BUCKET_AGAIN) {',
      '    if (s == FKV_BUCKET_AGAIN) return true;\n    if (s == FKV_BUCKET_AGAIN) {',
    ],
  ]),
  ...inFile('native/client/lookup/direct.c', [
    [
      'direct: merge: a miss in a settling bucket is believed at once',
      merge('a_look_in_place_finds_what_a_merge_moved'),
      'if (state == FKV_BUCKET_HERE || saw_settling) return',
      'if (state == FKV_BUCKET_HERE || !saw_settling) return',
    ],
  ]),
  ...inFile('native/client/lookup/shard.c', [
    [
      'lookup: merge: the index is READ by an outdated layout when the lease of before is over',
      merge('a_client_that_comes_back_reads_nothing_by_an_outdated_layout'),
      'if (lease == SHARD_READY && now >= sh->index_until) return',
      'if (lease == SHARD_READY && sh->index_until == 1) return',
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
  // ---------------------------------------------------------------- the location cache
  ...inFile('native/client/lookup/get.c', [
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
];
