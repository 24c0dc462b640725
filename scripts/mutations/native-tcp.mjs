/** What must not be missing from the tcp provider, each with the C test that notices: on a check, or by the thread sanitizer's report. */
const by = (program) => (test, more) => ({ program, test, ...more });
const THREAD = { sanitizer: 'thread', runs: 30 }; // a race is not seen in each run
const hostile = by('fabric_tcp_hostile');
const stress = by('fabric_tcp_stress');
const faults = by('fabric_tcp_faults');
const conformance = by('fabric_tcp');

export const mutations = [
  // ---------------------------------------------------------------- what a peer may say
  {
    name: 'tcp: messages beyond the window are taken', file: 'native/fabric/tcp_rx.c',
    find: '> tcp_domain_of(c)->window) return BAD;', replace: '> tcp_domain_of(c)->window && !c) return BAD;',
    caughtBy: hostile('messages_beyond_the_window_cut_a_connection_off'),
  },
  {
    name: 'tcp: READs beyond the depth are taken', file: 'native/fabric/tcp_rx.c',
    find: 'if (c->serve_tail - c->serve_head >= TCP_DEPTH) return BAD;', replace: '',
    caughtBy: hostile('reads_beyond_the_depth_cut_a_connection_off'),
  },
  {
    name: 'tcp: credit that was not earned is taken', file: 'native/fabric/tcp_rx.c',
    find: 'if (f->argument < c->returned || f->argument > __atomic_load_n(&c->spent, __ATOMIC_ACQUIRE)) return BAD;', replace: '',
    caughtBy: hostile('frames_that_mean_nothing_cut_a_connection_off'),
  },
  {
    name: 'tcp: credit may go backwards', file: 'native/fabric/tcp_rx.c',
    find: 'if (f->argument < c->returned || f->argument >', replace: 'if (f->argument >',
    caughtBy: hostile('credit_that_goes_backwards_cuts_a_connection_off'),
  },
  {
    name: 'tcp: answers that nobody asked for are taken', file: 'native/fabric/tcp_rx.c',
    find: 'c->answered == __atomic_load_n(&c->posted, __ATOMIC_ACQUIRE) || ', replace: '',
    caughtBy: hostile('frames_that_mean_nothing_cut_a_connection_off'),
  },
  {
    name: 'tcp: the number of an answer is believed', file: 'native/fabric/tcp_rx.c',
    find: ' || f->number != (uint32_t)c->answered) return BAD', replace: ') return BAD',
    caughtBy: hostile('false_answers_cut_a_connection_off_and_write_nothing_beyond_the_buffer'),
  },
  {
    name: 'tcp: the length of an answer is believed', file: 'native/fabric/tcp_rx.c',
    find: 'if (end > q->bytes || f->last != (end == q->bytes)) return BAD;', replace: '(void)end;',
    caughtBy: hostile('false_answers_cut_a_connection_off_and_write_nothing_beyond_the_buffer'),
  },
  {
    name: 'tcp: frames before the answer to a hello are taken', file: 'native/fabric/tcp_rx.c',
    find: 'state == TCP_UP || f.type == TCP_BYE ? take_frame(c, &f) : BAD', replace: 'state ? take_frame(c, &f) : BAD',
    caughtBy: hostile('a_client_that_does_not_wait_for_the_answer_is_cut_off'),
  },
  {
    name: 'tcp: the limits of a hello are believed', file: 'native/fabric/tcp_rx.c',
    find: 'most < FAB_MESSAGE_MIN || h->window < tcp_cost(most) || h->depth == 0', replace: 'most == UINT32_MAX',
    caughtBy: hostile('hellos_that_cannot_be_served_are_dropped_or_refused_unseen'),
  },
  {
    name: 'tcp: silent peers are not timed', file: 'native/fabric/tcp_listen.c',
    find: '    tcp_conn_timer(c);\n', replace: '',
    caughtBy: hostile('a_client_that_says_nothing_is_dropped_in_time'),
  },
  {
    name: 'tcp: connections in excess are not bounded', file: 'native/fabric/tcp_listen.c',
    find: 'excess && l->excess >= TCP_EXCESS ? NULL : ', replace: '',
    caughtBy: hostile('silent_clients_beyond_all_bounds_are_closed_at_once'),
  },
  {
    name: 'tcp: max_conns is not looked at', file: 'native/fabric/tcp_listen.c',
    find: 'bool excess = l->live >= o->max_conns;', replace: 'bool excess = l->live > o->max_conns * 9;',
    caughtBy: conformance('more_connections_than_allowed_are_refused_until_one_ends'),
  },
  // ---------------------------------------------------------------- memory
  {
    name: 'tcp: trust domains are not compared', file: 'native/fabric/tcp_mr.c',
    find: 'm->trust != trust || ', replace: '',
    caughtBy: conformance('a_region_of_another_trust_domain_is_refused'),
  },
  {
    name: 'tcp: any rkey opens a region', file: 'native/fabric/tcp_mr.c',
    find: '    const tcp_mr *m = d->mrs[place_of(d, rkey)];\n',
    replace: '    const tcp_mr *m = d->mrs[place_of(d, rkey)];\n    for (size_t i = 0; !m && i < d->mr_room; i++) m = d->mrs[i];\n',
    caughtBy: conformance('a_wrong_rkey_is_refused'),
  },
  {
    name: 'tcp: bounds are not compared', file: 'native/fabric/tcp_mr.c',
    find: 'if (at > m->bytes || bytes > m->bytes - at) return NULL;', replace: '',
    caughtBy: conformance('reads_beyond_the_bounds_are_refused'),
  },
  {
    name: 'tcp: a refused READ does not end the connection', file: 'native/fabric/tcp_serve.c',
    find: '    c->nak = true;\n', replace: '',
    caughtBy: hostile('after_a_refused_read_nothing_more_is_served'),
  },
  {
    name: 'tcp: deregistration does not wait for copies', file: 'native/fabric/tcp_mr.c',
    find: '        pthread_rwlock_wrlock(&d->mr_lock);\n        remove_from(d, m->rkey);\n        pthread_rwlock_unlock(&d->mr_lock);',
    replace: '        remove_from(d, m->rkey);',
    caughtBy: stress('a_region_may_be_unmapped_as_soon_as_dereg_returns', THREAD),
  },
  {
    name: 'tcp: regions are copied by memcpy', file: 'native/fabric/tcp_serve.c',
    find: 'fkv_copy_shared(out + used, from + q->done, n);', replace: '__builtin_memcpy(out + used, from + q->done, n);',
    caughtBy: stress('aligned_words_are_never_torn', THREAD),
  },
  {
    name: 'tcp: input goes on after a disconnect', file: 'native/fabric/tcp_rx.c',
    find: ' || __atomic_load_n(&c->deaf, __ATOMIC_ACQUIRE);', replace: ';',
    caughtBy: stress('an_owner_that_disconnects_in_the_middle_of_an_answer_has_its_buffer_back'),
  },
  {
    name: 'tcp: a disconnect does not wait for input', file: 'native/fabric/tcp_conn.c',
    find: '    if (c->threaded) pthread_mutex_lock(&c->rx_lock);\n    __atomic_store_n(&c->deaf, 1, __ATOMIC_RELEASE);\n    if (c->threaded) pthread_mutex_unlock(&c->rx_lock);',
    replace: '    __atomic_store_n(&c->deaf, 1, __ATOMIC_RELEASE);',
    caughtBy: stress('an_owner_that_disconnects_in_the_middle_of_an_answer_has_its_buffer_back', THREAD),
  },
  // ---------------------------------------------------------------- time
  {
    name: 'tcp: READs have no deadline', file: 'native/fabric/tcp_read.c',
    find: 'return silent < s->deadline_ns ? silent : s->deadline_ns;', replace: 'return silent + s->deadline_ns;',
    caughtBy: faults('reads_that_are_not_answered_run_out_of_time_at_either_end'),
  },
  {
    name: 'tcp: dripping answers have no deadline', file: 'native/fabric/tcp_read.c',
    find: 'return silent < s->deadline_ns ? silent : s->deadline_ns;', replace: 'return silent;',
    caughtBy: faults('an_answer_that_drips_runs_out_of_time'),
  },
  {
    name: 'tcp: bytes do not buy time', file: 'native/fabric/tcp_read.c',
    find: ' + c->outstanding_bytes * TCP_BYTE_NS', replace: '',
    caughtBy: faults('a_large_read_that_goes_on_outlives_the_time_limit_of_a_small_one'),
  },
  {
    name: 'tcp: progress does not buy time', file: 'native/fabric/tcp_read.c',
    find: 'if (rx != c->seen_rx) c->progress_ns = now;', replace: '',
    caughtBy: faults('a_large_read_that_goes_on_outlives_the_time_limit_of_a_small_one'),
  },
  {
    name: 'tcp: no keepalive', file: 'native/fabric/tcp_address.c',
    find: 'setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);', replace: '',
    caughtBy: faults('a_peer_whose_host_is_gone_is_found_on_idle_and_on_busy_connections'),
  },
  {
    name: 'tcp: no limit for what is not acknowledged', file: 'native/fabric/tcp_address.c',
    find: 'setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &vanished, sizeof vanished);', replace: '(void)vanished;',
    caughtBy: faults('a_peer_whose_host_is_gone_is_found_on_idle_and_on_busy_connections'),
  },
  // ---------------------------------------------------------------- the stream
  {
    name: 'tcp: a cut message is not continued first', file: 'native/fabric/tcp_tx.c',
    find: '    c->ring_first = sent < all && (c->ring_first || sent > 0);', replace: '    (void)all;',
    caughtBy: stress('a_stream_stays_whole_wherever_a_full_socket_cuts_it'),
  },
  {
    name: 'tcp: the rest of a cut request is dropped', file: 'native/fabric/tcp_tx.c',
    find: '        c->cut_bytes = (uint8_t)(end - sent);', replace: '        c->cut_bytes = 0;',
    caughtBy: stress('a_stream_stays_whole_wherever_a_full_socket_cuts_it', { runs: 60 }),
  },
  {
    name: 'tcp: the rest of cut answers is dropped', file: 'native/fabric/tcp_tx.c',
    find: '    c->left_bytes = n;\n', replace: '    c->left_bytes = n * 0;\n',
    caughtBy: stress('a_peer_that_does_not_read_holds_up_nobody_and_gets_everything_in_the_end'),
  },
  // ---------------------------------------------------------------- between the threads
  {
    name: 'tcp: the mark "write again" is not looked at', file: 'native/fabric/tcp_tx.c',
    find: '    __atomic_exchange_n(&c->tx_right, TCP_TX_HELD, __ATOMIC_ACQ_REL);\n    return true;',
    replace: '    __atomic_exchange_n(&c->tx_right, TCP_TX_FREE, __ATOMIC_ACQ_REL);\n    return false;',
    caughtBy: stress('what_is_sent_while_the_responder_writes_is_sent_by_it'),
  },
  {
    name: 'tcp: a wake that was polled away is forgotten', file: 'native/fabric/tcp_cq.c',
    find: 'cq->look_again = true;', replace: 'cq->look_again = false;',
    caughtBy: conformance('a_wake_from_another_thread_is_never_lost', { runs: 20 }),
  },
  {
    name: 'tcp: the inbox is not looked at again before sleeping', file: 'native/fabric/tcp_cq.c',
    find: 'if (__atomic_load_n(&cq->inbox, __ATOMIC_SEQ_CST)) {', replace: 'if (!cq->responder) {',
    caughtBy: conformance('a_user_that_lies_down_sees_what_was_handed_over_before'),
  },
  {
    name: 'tcp: DISCONNECT comes with other completions', file: 'native/fabric/tcp_deliver.c',
    find: 'c->down_poll == cq->polls', replace: '!c',
    caughtBy: conformance('a_rejected_peer_gets_the_reason_and_then_the_end'),
  },
  {
    name: 'tcp: a close is not said', file: 'native/fabric/tcp_conn.c',
    find: '    if (s == TCP_UP || (s == TCP_GREETING && !c->listener)) tcp_send_bye(c);\n', replace: '',
    caughtBy: conformance('an_orderly_end_delivers_what_was_sent_and_then_one_disconnect'),
  },
  {
    name: 'tcp: unlisten leaves those unseen who ask', file: 'native/fabric/tcp_listen.c',
    find: '    __atomic_store_n(&l->closed, 1, __ATOMIC_RELEASE);\n    tcp_cq_refuse_unseen((tcp_cq *)head->cq, l);\n', replace: '',
    caughtBy: conformance('peers_that_wait_at_a_closed_listener_are_told', { runs: 20 }),
  },
];
