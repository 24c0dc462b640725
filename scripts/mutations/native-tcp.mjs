/**
 * What must not be missing from the tcp provider, each with the C test that notices: on a check, or by the thread
 * sanitizer's report.
 */
import { by, inFile } from './checks/in-file.mjs';

const THREAD = { sanitizer: 'thread', runs: 30 }; // a race is not seen in each run
const hostile = by('fabric_tcp_hostile');
const places = by('fabric_tcp_places');
const stress = by('fabric_tcp_stress');
const faults = by('fabric_tcp_faults');
const conformance = by('fabric_tcp');
const follow = by('fabric_tcp_follow');
const wakes = by('fabric_tcp_wake');

export const mutations = [
  // ---------------------------------------------------------------- the end of a connection
  ...inFile('native/fabric/tcp/conn.c', [
    [
      'tcp: a connection that made room for another is freed before its own event',
      places('a_connection_that_made_room_is_not_touched_by_its_own_event', { sanitizer: 'address' }),
      '    if (c->threaded)\n        list_push(&c->io->dead',
      '    if (c->threaded && !c->announced)\n        list_push(&c->io->dead',
    ],
  ]),
  // ---------------------------------------------------------------- followed READs
  ...inFile('native/fabric/tcp/follow.c', [
    [
      'tcp: a READ is followed into another tenant',
      follow('a_region_of_another_tenant_is_not_led_to'),
      'next->tenant != c->tenant || ',
      '',
    ],
    [
      'tcp: a READ is followed beyond the end of a region',
      follow('what_leads_nowhere_or_too_far_does_not_come'),
      'if (to.offset > next->bytes || to.bytes > next->bytes - to.offset) return NULL;',
      'if (to.offset >= next->bytes) return NULL;',
    ],
    [
      'tcp: more comes along than there is room for',
      follow('what_leads_nowhere_or_too_far_does_not_come'),
      ' || to.bytes > q->next_bytes) return NULL;',
      ') return NULL;',
    ],
  ]),
  ...inFile('native/fabric/tcp/mr.c', [
    [
      'tcp: a region that is deregistered keeps its name',
      follow('a_group_leads_to_its_own_regions_only'),
      '        tcp_unname(m);\n',
      '',
    ],
  ]),
  ...inFile('native/fabric/tcp/frame.c', [
    [
      'tcp: the bounds of a followed READ are believed',
      follow('a_followed_read_beyond_the_bounds_cuts_a_connection_off'),
      '(uint32_t)f->argument > FAB_FOLLOW_FIRST_MAX || f->argument >> 32 > FAB_FOLLOW_MAX',
      'f->argument >> 32 > UINT32_MAX',
    ],
  ]),
  // ---------------------------------------------------------------- what a peer may say
  ...inFile('native/fabric/tcp/rx.c', [
    [
      'tcp: messages beyond the window are taken',
      hostile('messages_beyond_the_window_cut_a_connection_off'),
      '> tcp_domain_of(c)->window) return BAD;',
      '> tcp_domain_of(c)->window && !c) return BAD;',
    ],
    [
      'tcp: READs beyond the depth are taken',
      hostile('reads_beyond_the_depth_cut_a_connection_off'),
      'if (c->serve_tail - c->serve_head >= TCP_DEPTH) return BAD;',
      '',
    ],
    [
      'tcp: credit that was not earned is taken',
      hostile('frames_that_mean_nothing_cut_a_connection_off'),
      'if (f->argument < c->returned || f->argument > __atomic_load_n(&c->spent, __ATOMIC_ACQUIRE)) return BAD;',
      '',
    ],
    [
      'tcp: credit may go backwards',
      hostile('credit_that_goes_backwards_cuts_a_connection_off'),
      'if (f->argument < c->returned || f->argument >',
      'if (f->argument >',
    ],
    [
      'tcp: answers that nobody asked for are taken',
      hostile('frames_that_mean_nothing_cut_a_connection_off'),
      'c->answered == __atomic_load_n(&c->posted, __ATOMIC_ACQUIRE) || ',
      '',
    ],
    [
      'tcp: the number of an answer is believed',
      hostile('false_answers_cut_a_connection_off_and_write_nothing_beyond_the_buffer'),
      ' || f->number != (uint32_t)c->answered) return BAD',
      ') return BAD',
    ],
    [
      'tcp: the length of an answer is believed',
      hostile('false_answers_cut_a_connection_off_and_write_nothing_beyond_the_buffer'),
      'if (end > q->bytes || (f->last != (end == q->bytes) && !(q->next_bytes && end == q->bytes))) return BAD;',
      '(void)end;',
    ],
    [
      'tcp: the length of what comes along is believed',
      follow('false_halves_cut_a_connection_off_and_write_nothing_beyond_their_places'),
      'f->argument == 0 || f->argument > q->next_bytes || !f->last',
      'f->argument == 0 || !f->last',
    ],
    [
      'tcp: a followed READ that was not offered is taken',
      follow('a_followed_read_that_was_not_offered_cuts_a_connection_off'),
      '    if (follow && !tcp_domain_of(c)->options.follow) return BAD;    /* it was not offered */\n',
      '',
    ],
    [
      'tcp: frames before the answer to a hello are taken',
      hostile('a_client_that_does_not_wait_for_the_answer_is_cut_off'),
      'state == TCP_UP || f.type == TCP_BYE ? take_frame(c, &f) : BAD',
      'state ? take_frame(c, &f) : BAD',
    ],
    [
      'tcp: the limits of a hello are believed',
      hostile('hellos_that_cannot_be_served_are_dropped_or_refused_unseen'),
      'most < FAB_MESSAGE_MIN || h->window < tcp_cost(most) || h->depth == 0',
      'most == UINT32_MAX',
    ],
  ]),
  ...inFile('native/fabric/provider.h', [
    [
      'tcp: silent peers of one address are not bounded',
      places('silent_clients_of_one_address_do_not_end_those_of_another'),
      '    if (s->same >= FAB_STRANGERS_OF_ADDRESS) return s->oldest_same;\n',
      '',
    ],
    [
      'tcp: silent peers are not bounded',
      places('silent_clients_of_many_addresses_have_a_bound_together'),
      's->all >= FAB_STRANGERS ? s->oldest : NULL',
      'NULL',
    ],
  ]),
  ...inFile('native/fabric/tcp/listen.c', [
    [
      'tcp: silent peers are not timed',
      hostile('a_client_that_says_nothing_is_dropped_in_time'),
      '    tcp_conn_timer(c);\n',
      '',
    ],
    [
      'tcp: connections take the descriptors that are to be left to others',
      places('connections_leave_descriptors_to_others'),
      '    fd = fab_descriptor_or_none(&io->domain->options, fd, end_oldest, io);\n',
      '',
    ],
  ]),
  ...inFile('native/fabric/tcp/rx.c', [
    [
      'tcp: max_conns is not looked at',
      conformance('more_connections_than_allowed_are_refused_until_one_ends'),
      '__ATOMIC_RELAXED) >= o->max_conns',
      '__ATOMIC_RELAXED) > o->max_conns * 9',
    ],
    [
      'tcp: silent peers take places',
      places('silent_clients_take_no_places_and_the_oldest_of_them_goes'),
      '__ATOMIC_RELAXED) >= o->max_conns',
      '__ATOMIC_RELAXED) + (uint32_t)c->io->timed > o->max_conns',
    ],
  ]),
  // ---------------------------------------------------------------- memory
  ...inFile('native/fabric/tcp/mr.c', [
    [
      'tcp: tenants are not compared',
      conformance('a_region_of_another_tenant_is_refused'),
      'm->tenant != tenant || ',
      '',
    ],
    [
      'tcp: any rkey opens a region',
      conformance('a_wrong_rkey_is_refused'),
      '    const tcp_mr *m = d->mrs[place_of(d, rkey)];\n',
      '    const tcp_mr *m = d->mrs[place_of(d, rkey)];\n    for (size_t i = 0; !m && i < d->mr_room; i++) m = d->mrs[i];\n',
    ],
    [
      'tcp: bounds are not compared',
      conformance('reads_beyond_the_bounds_are_refused'),
      'if (at > m->bytes || bytes > m->bytes - at) return NULL;',
      '',
    ],
  ]),
  ...inFile('native/fabric/tcp/serve.c', [
    [
      'tcp: a refused READ does not end the connection',
      hostile('after_a_refused_read_nothing_more_is_served'),
      '    c->nak = true;\n',
      '',
    ],
  ]),
  ...inFile('native/fabric/tcp/mr.c', [
    [
      'tcp: deregistration does not wait for copies',
      stress('a_region_may_be_unmapped_as_soon_as_dereg_returns', THREAD),
      '        pthread_rwlock_wrlock(&d->mr_lock);\n        remove_from(d, m->rkey);\n        tcp_unname(m);\n        pthread_rwlock_unlock(&d->mr_lock);',
      '        remove_from(d, m->rkey);\n        tcp_unname(m);',
    ],
  ]),
  ...inFile('native/fabric/tcp/serve.c', [
    [
      'tcp: regions are copied by memcpy',
      stress('aligned_words_are_never_torn', THREAD),
      'fkv_copy_shared(out + used, from + q->done, n);',
      '__builtin_memcpy(out + used, from + q->done, n);',
    ],
  ]),
  ...inFile('native/fabric/tcp/rx.c', [
    [
      'tcp: input goes on after a disconnect',
      stress('an_owner_that_disconnects_in_the_middle_of_an_answer_has_its_buffer_back'),
      ' || __atomic_load_n(&c->deaf, __ATOMIC_ACQUIRE);',
      ';',
    ],
  ]),
  ...inFile('native/fabric/tcp/conn.c', [
    [
      'tcp: a disconnect does not wait for input',
      stress('an_owner_that_disconnects_in_the_middle_of_an_answer_has_its_buffer_back', THREAD),
      '    if (c->threaded) pthread_mutex_lock(&c->rx_lock);\n    __atomic_store_n(&c->deaf, 1, __ATOMIC_RELEASE);\n    if (c->threaded) pthread_mutex_unlock(&c->rx_lock);',
      '    __atomic_store_n(&c->deaf, 1, __ATOMIC_RELEASE);',
    ],
  ]),
  // ---------------------------------------------------------------- time
  ...inFile('native/fabric/tcp/read.c', [
    [
      'tcp: READs have no deadline',
      faults('reads_that_are_not_answered_run_out_of_time_at_either_end'),
      'return silent < s->deadline_ns ? silent : s->deadline_ns;',
      'return silent + s->deadline_ns;',
    ],
    [
      'tcp: dripping answers have no deadline',
      faults('an_answer_that_drips_runs_out_of_time'),
      'return silent < s->deadline_ns ? silent : s->deadline_ns;',
      'return silent;',
    ],
    [
      'tcp: bytes do not buy time',
      faults('a_large_read_that_goes_on_outlives_the_time_limit_of_a_small_one'),
      ' + c->outstanding_bytes * TCP_BYTE_NS',
      '',
    ],
    [
      'tcp: progress does not buy time',
      faults('a_large_read_that_goes_on_outlives_the_time_limit_of_a_small_one'),
      'if (rx != c->seen_rx) c->progress_ns = now;',
      '',
    ],
  ]),
  ...inFile('native/fabric/tcp/address.c', [
    [
      'tcp: no keepalive',
      faults('a_peer_whose_host_is_gone_is_found_on_idle_and_on_busy_connections'),
      'setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);',
      '',
    ],
    [
      'tcp: no limit for what is not acknowledged',
      faults('a_peer_whose_host_is_gone_is_found_on_idle_and_on_busy_connections'),
      'setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &vanished, sizeof vanished);',
      '(void)vanished;',
    ],
  ]),
  // ---------------------------------------------------------------- the stream
  ...inFile('native/fabric/tcp/tx.c', [
    [
      'tcp: a cut message is not continued first',
      stress('a_stream_stays_whole_wherever_a_full_socket_cuts_it'),
      '    c->ring_first = sent < all && (c->ring_first || sent > 0);',
      '    (void)all;',
    ],
    [
      'tcp: the rest of a cut request is dropped',
      stress('a_stream_stays_whole_wherever_a_full_socket_cuts_it', { runs: 60 }),
      '        c->cut_bytes = (uint8_t)(end - sent);',
      '        c->cut_bytes = 0;',
    ],
    [
      'tcp: the rest of cut answers is dropped',
      stress('a_peer_that_does_not_read_holds_up_nobody_and_gets_everything_in_the_end'),
      '    c->left_bytes = n;\n',
      '    c->left_bytes = n * 0;\n',
    ],
  ]),
  // ---------------------------------------------------------------- between the threads
  ...inFile('native/fabric/tcp/tx.c', [
    [
      'tcp: the mark "write again" is not looked at',
      stress('what_is_sent_while_the_responder_writes_is_sent_by_it', { runs: 10 }),
      '    uint32_t was = __atomic_exchange_n(&c->tx_right, TCP_TX_HELD, __ATOMIC_ACQ_REL);\n    fkv_assert(was == TCP_TX_AGAIN);   /* held, and nothing else: only the holder gives it back */\n    return true;',
      '    __atomic_exchange_n(&c->tx_right, TCP_TX_FREE, __ATOMIC_ACQ_REL);\n    return false;',
    ],
  ]),
  ...inFile('native/fabric/tcp/cq.c', [
    [
      'tcp: a wake that was polled away is forgotten',
      wakes('after_a_wake_that_was_polled_away_there_is_another_look'),
      'cq->look_again = true;',
      'cq->look_again = false;',
    ],
    [
      'tcp: who woke is asked before the wake is taken back',
      wakes('a_wake_that_comes_while_another_is_polled_away_is_not_lost'),
      'if (read(cq->eventfd, &times, sizeof times) == sizeof times) cq->heard += times;',
      'uint32_t by = __atomic_exchange_n(&cq->woken, 0, __ATOMIC_ACQUIRE); ' +
        'if (read(cq->eventfd, &times, sizeof times) == sizeof times) cq->heard += times; cq->woken = by;',
    ],
    [
      'tcp: the inbox is not looked at again before sleeping',
      conformance('a_user_that_lies_down_sees_what_was_handed_over_before'),
      'if (__atomic_load_n(&cq->inbox, __ATOMIC_SEQ_CST)) {',
      'if (!cq->responder) {',
    ],
  ]),
  ...inFile('native/fabric/tcp/deliver.c', [
    [
      'tcp: DISCONNECT comes with other completions',
      conformance('a_rejected_peer_gets_the_reason_and_then_the_end'),
      'c->down_poll == cq->polls',
      '!c',
    ],
    [
      'tcp: READs that were flushed at an end are given again',
      conformance('each_read_ends_once_when_an_owner_is_killed_with_many_outstanding'),
      'while (n < max && c->completed < answered)',
      'while (n < max && c->completed != answered)',
    ],
  ]),
  ...inFile('native/fabric/tcp/conn.c', [
    [
      'tcp: a close is not said',
      conformance('an_orderly_end_delivers_what_was_sent_and_then_one_disconnect'),
      '    if (s == TCP_UP || (s == TCP_GREETING && !c->listener)) tcp_send_bye(c);\n',
      '',
    ],
  ]),
  ...inFile('native/fabric/tcp/listen.c', [
    [
      'tcp: unlisten leaves those unseen who ask',
      conformance('peers_that_wait_at_a_closed_listener_are_told', { runs: 20 }),
      '    __atomic_store_n(&l->closed, 1, __ATOMIC_RELEASE);\n    tcp_cq_refuse_unseen((tcp_cq *)head->cq, l);\n',
      '',
    ],
  ]),
];
