/** What must not be missing from native/lookup, native/session and the shm provider, each with the C test that notices. */
const by = (program) => (test) => ({ program, test });
const lookup = by('lookup');
const lease = by('lookup_lease');
const direct = by('lookup_direct');
const index = by('lookup_index');
const locations = by('lookup_locations');
const session = by('session');
const shm = by('fabric_shm');

export const mutations = [
  // ---------------------------------------------------------------- what a GET may be answered under
  {
    name: 'lookup: the lease is compared with the time before the READ',
    file: 'native/lookup/get.c',
    find: '!lease_good(g, now)) late(g);',
    replace: '!lease_good(g, g->started_ns)) late(g);',
    caughtBy: lease('an_old_value_is_not_returned_after_the_lease_has_run_out'),
  },
  {
    name: 'lookup: a GET may take as long as it likes',
    file: 'native/lookup/get.c',
    find: 'now - g->started_ns > fkv_get_life_ns(bytes) || ',
    replace: '',
    caughtBy: lookup('a_get_that_took_longer_than_its_life_is_discarded'),
  },
  {
    name: 'lookup: a lease of another incarnation covers an old layout',
    file: 'native/lookup/get.c',
    find: 'return g->layout->incarnation == sh->lease_incarnation && now',
    replace: 'return now',
    caughtBy: lease('a_read_by_an_old_layout_is_not_covered_by_a_lease_of_the_next_incarnation'),
  },
  {
    name: 'direct: the lease is not compared after the copy',
    file: 'native/lookup/direct.c',
    find: 'if (__builtin_expect(now >= s->sh->lease_until, 0)) {',
    replace: 'if (s->sh->lease_until == 0) {',
    caughtBy: direct('nothing_is_answered_in_place_after_the_lease_has_run_out'),
  },
  {
    name: 'direct: a hit may take as long as it likes',
    file: 'native/lookup/direct.c',
    find: 'return now - l->looked_ns <= fkv_get_life_ns(FKV_BUCKET_BYTES); }',
    replace: 'return now >= l->looked_ns; }',
    caughtBy: direct('a_reader_that_is_held_up_in_the_middle_of_a_copy_does_it_again'),
  },
  {
    name: 'direct: what was late twice is believed',
    file: 'native/lookup/direct.c',
    find: '        if (!in_time(l, now)) r = LOOK_LATER;\n',
    replace: '',
    caughtBy: direct('a_reader_that_is_held_up_each_time_answers_nothing_in_place'),
  },
  // ---------------------------------------------------------------- changes
  {
    name: 'session: a cancelled change that was sent is said to have had no effect',
    file: 'native/session/request.c',
    find: 'if (r->sent_before && op_changes(r->head.op)) return FKV_STALE_SEQUENCE;',
    replace: 'if (r->sent_before && op_changes(r->head.op)) return why == FKV_TIMEOUT ? FKV_STALE_SEQUENCE : why;',
    caughtBy: session('a_change_that_was_sent_and_is_given_up_is_indeterminate_whatever_the_reason'),
  },
  {
    name: 'session: a change that is sent again does not say so',
    file: 'native/session/request.c',
    find: 'r->head.flags |= FKV_REQUEST_RETRY;',
    replace: 'r->head.flags |= 0;',
    caughtBy: session('a_change_without_answer_is_sent_again_as_the_same_after_a_new_connection'),
  },
  {
    name: 'session: the window of sequences is not bounded',
    file: 'native/session/shards.c',
    find: 'if (h->next_sequence - oldest->head.sequence >= FKV_DEDUP_WINDOW) return false;',
    replace: '(void)oldest;',
    caughtBy: session('no_more_changes_are_outstanding_on_a_shard_than_its_owner_remembers'),
  },
  // ---------------------------------------------------------------- the location cache
  {
    name: 'locations: what lies at a cached location is believed whatever state it is in',
    file: 'native/lookup/get.c',
    find: '    switch (fkv_extent_check(g->room.base, g->bytes, &want, &found)) {',
    replace: '    if (g->guessed) ((fkv_extent *)(void *)g->room.base)->state = FKV_EXTENT_LIVE;\n    switch (fkv_extent_check(g->room.base, g->bytes, &want, &found)) {',
    caughtBy: locations('after_a_change_the_index_is_asked_and_the_new_place_is_learned'),
  },
  {
    name: 'locations: an extent of another key at a cached location is believed',
    file: 'native/lookup/get.c',
    find: '    fkv_wanted want = { .key = g->key, .key_bytes = g->key_bytes, .ns = g->ns, .tag = g->tag };\n    fkv_found found;',
    replace:
      '    const fkv_extent *e = (const fkv_extent *)(const void *)g->room.base;\n' +
      '    fkv_wanted want = { .key = g->guessed ? (const void *)(e + 1) : g->key, .key_bytes = g->guessed ? e->key_bytes : g->key_bytes, .ns = g->ns, .tag = g->tag };\n    fkv_found found;',
    caughtBy: locations('another_keys_extent_at_a_cached_location_is_not_returned'),
  },
  {
    name: 'locations: used although the segment has another tag',
    file: 'native/lookup/get.c',
    find: 'if (!v || v->tag != at.tag ||\n',
    replace: 'if (!v ||\n',
    caughtBy: locations('a_location_is_forgotten_when_its_segment_has_another_tag'),
  },
  {
    name: 'locations: used although a newer layout is known to exist',
    file: 'native/lookup/get.c',
    find: 'if (g->retries || l->shard[g->shard].outdated || !locations_guess',
    replace: 'if (g->retries || !locations_guess',
    caughtBy: locations('no_location_is_guessed_while_the_layout_is_known_to_be_old'),
  },
  {
    name: 'locations: a failed guess counts against the life of the GET by the index',
    file: 'native/lookup/get.c',
    find: '    g->started_ns = lookup_polled_ns(l);\n    read_bucket(g);',
    replace: '    read_bucket(g);',
    caughtBy: locations('a_stale_guess_takes_nothing_from_the_gets_life'),
  },
  {
    name: 'locations: a key that always changes is guessed again and again',
    file: 'native/lookup/locations.c',
    find: 'if (trust_of(e) < LOCATION_TRUSTED) {',
    replace: 'if (trust_of(e) > LOCATION_TRUST_MAX) {',
    caughtBy: locations('a_key_that_changes_more_often_than_it_is_read_is_left_alone_until_it_rests'),
  },
  {
    name: 'locations: any entry gives way to a newcomer',
    file: 'native/lookup/locations.c',
    find: 'if (i == 0 || use_of(&set[way]) < use_of(&set[least])) least = way;',
    replace: 'if (i == 0) least = way;',
    caughtBy: locations('a_scan_replaces_only_what_was_used_once'),
  },
  {
    name: 'locations: what was popular once stays',
    file: 'native/lookup/locations.c',
    find: '(64 - AGE_EVERY_BITS) == 0) age(set_of(c, hash));',
    replace: '(64 - AGE_EVERY_BITS) == 64) age(set_of(c, hash));',
    caughtBy: locations('what_was_popular_long_ago_gives_way'),
  },
  {
    name: 'lookup: a segment that finds no place is waited for',
    file: 'native/lookup/layout.c',
    find: 'if (e == -EAGAIN || e == -ENOMEM) l->shard',
    replace: 'if (e == -ENOMEM) l->shard',
    caughtBy: index('what_lies_in_a_segment_that_finds_no_place_is_asked_for'),
  },
  // ---------------------------------------------------------------- shm
  {
    name: 'shm: the flag "revoked" is not looked at',
    file: 'native/fabric/shm_poll.c',
    find: 'if (atomic_load_explicit(&c->shared->revoked[!c->side][r->of->slot], memory_order_acquire)) r->status = FAB_REM_ACCESS_ERR;',
    replace: '',
    caughtBy: shm('a_deregistered_region_is_refused'),
  },
];
