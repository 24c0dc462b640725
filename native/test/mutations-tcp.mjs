/**
 * Mutation checks of the tcp provider: each mutation takes one mechanism out of native/fabric/tcp*.c, and the test named with it must
 * then fail: on a check, by a sanitizer's report, or, where `hangs` says so, by waiting for what no longer comes.
 *
 *   node native/test/mutations-tcp.mjs [part of a name]
 *
 * A mutation is { name, file, find, replace, program, test, sanitizer?, hangs? }; `find` occurs exactly once in native/fabric/`file`.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const native = resolve(dirname(fileURLToPath(import.meta.url)), '..');
const LIMIT_MS = 60_000;

const hostile = (test) => ({ program: 'fabric_tcp_hostile', test });
const stress = (test, sanitizer) => ({ program: 'fabric_tcp_stress', test, sanitizer });
const faults = (test) => ({ program: 'fabric_tcp_faults', test });
const conformance = (test, sanitizer) => ({ program: 'fabric_tcp', test, sanitizer });

const mutations = [
  // ---------------------------------------------------------------- what a peer may say
  {
    name: 'messages beyond the window are taken', file: 'tcp_rx.c', hangs: true,
    find: '> tcp_domain_of(c)->window) return BAD;', replace: '> tcp_domain_of(c)->window && !c) return BAD;',
    ...hostile('messages_beyond_the_window_cut_a_connection_off'),
  },
  {
    name: 'READs beyond the depth are taken', file: 'tcp_rx.c',
    find: 'if (c->serve_tail - c->serve_head >= TCP_DEPTH) return BAD;', replace: '',
    ...hostile('reads_beyond_the_depth_cut_a_connection_off'),
  },
  {
    name: 'credit that was not earned is taken', file: 'tcp_rx.c', hangs: true,
    find: 'if (f->argument < c->returned || f->argument > __atomic_load_n(&c->spent, __ATOMIC_ACQUIRE)) return BAD;', replace: '',
    ...hostile('frames_that_mean_nothing_cut_a_connection_off'),
  },
  {
    name: 'credit may go backwards', file: 'tcp_rx.c', hangs: true,
    find: 'if (f->argument < c->returned || f->argument >', replace: 'if (f->argument >',
    ...hostile('credit_that_goes_backwards_cuts_a_connection_off'),
  },
  {
    name: 'answers that nobody asked for are taken', file: 'tcp_rx.c',
    find: 'c->answered == __atomic_load_n(&c->posted, __ATOMIC_ACQUIRE) || ', replace: '',
    ...hostile('frames_that_mean_nothing_cut_a_connection_off'),
  },
  {
    name: 'the number of an answer is believed', file: 'tcp_rx.c',
    find: ' || f->number != (uint32_t)c->answered) return BAD', replace: ') return BAD',
    ...hostile('false_answers_cut_a_connection_off_and_write_nothing_beyond_the_buffer'),
  },
  {
    name: 'the length of an answer is believed', file: 'tcp_rx.c',
    find: 'if (end > q->bytes || f->last != (end == q->bytes)) return BAD;', replace: '(void)end;',
    ...hostile('false_answers_cut_a_connection_off_and_write_nothing_beyond_the_buffer'),
  },
  {
    name: 'frames before the answer to a hello are taken', file: 'tcp_rx.c', hangs: true,
    find: 'state == TCP_UP || f.type == TCP_BYE ? take_frame(c, &f) : BAD', replace: 'state ? take_frame(c, &f) : BAD',
    ...hostile('a_client_that_does_not_wait_for_the_answer_is_cut_off'),
  },
  {
    name: 'the limits of a hello are believed', file: 'tcp_rx.c', hangs: true,
    find: 'most < FAB_MESSAGE_MIN || h->window < tcp_cost(most) || h->depth == 0', replace: 'most == UINT32_MAX',
    ...hostile('hellos_that_cannot_be_served_are_dropped_or_refused_unseen'),
  },
  {
    name: 'silent peers are not timed', file: 'tcp_listen.c', hangs: true,
    find: '    tcp_conn_timer(c);\n', replace: '',
    ...hostile('a_client_that_says_nothing_is_dropped_in_time'),
  },
  {
    name: 'connections in excess are not bounded', file: 'tcp_listen.c', hangs: true,
    find: 'excess && l->excess >= TCP_EXCESS ? NULL : ', replace: '',
    ...hostile('silent_clients_beyond_all_bounds_are_closed_at_once'),
  },
  {
    name: 'max_conns is not looked at', file: 'tcp_listen.c',
    find: 'bool excess = l->live >= o->max_conns;', replace: 'bool excess = l->live > o->max_conns * 9;',
    ...conformance('more_connections_than_allowed_are_refused_until_one_ends'),
  },
  // ---------------------------------------------------------------- memory
  {
    name: 'trust domains are not compared', file: 'tcp_mr.c',
    find: 'm->trust != trust || ', replace: '',
    ...conformance('a_region_of_another_trust_domain_is_refused'),
  },
  {
    name: 'bounds are not compared', file: 'tcp_mr.c',
    find: 'if (at > m->bytes || bytes > m->bytes - at) return NULL;', replace: '',
    ...conformance('reads_beyond_the_bounds_are_refused'),
  },
  {
    name: 'a refused READ does not end the connection', file: 'tcp_serve.c', hangs: true,
    find: '    c->nak = true;\n', replace: '',
    ...hostile('after_a_refused_read_nothing_more_is_served'),
  },
  {
    name: 'deregistration does not wait for copies', file: 'tcp_mr.c',
    find: '        pthread_rwlock_wrlock(&d->mr_lock);\n        remove_from(d, m->rkey);\n        pthread_rwlock_unlock(&d->mr_lock);',
    replace: '        remove_from(d, m->rkey);',
    ...stress('a_region_may_be_unmapped_as_soon_as_dereg_returns', 'thread'),
  },
  {
    name: 'regions are copied by memcpy', file: 'tcp_serve.c',
    find: 'fkv_copy_shared(out + used, from + q->done, n);', replace: '__builtin_memcpy(out + used, from + q->done, n);',
    ...stress('aligned_words_are_never_torn', 'thread'),
  },
  {
    name: 'input goes on after a disconnect', file: 'tcp_rx.c',
    find: ' || __atomic_load_n(&c->deaf, __ATOMIC_ACQUIRE);', replace: ';',
    ...stress('an_owner_that_disconnects_in_the_middle_of_an_answer_has_its_buffer_back'),
  },
  {
    name: 'a disconnect does not wait for input', file: 'tcp_conn.c',
    find: '    if (c->threaded) pthread_mutex_lock(&c->rx_lock);\n    __atomic_store_n(&c->deaf, 1, __ATOMIC_RELEASE);\n    if (c->threaded) pthread_mutex_unlock(&c->rx_lock);',
    replace: '    __atomic_store_n(&c->deaf, 1, __ATOMIC_RELEASE);',
    ...stress('an_owner_that_disconnects_in_the_middle_of_an_answer_has_its_buffer_back', 'thread'),
  },
  // ---------------------------------------------------------------- time
  {
    name: 'READs have no deadline', file: 'tcp_read.c', hangs: true,
    find: 'return silent < s->deadline_ns ? silent : s->deadline_ns;', replace: 'return silent + s->deadline_ns;',
    ...faults('reads_that_are_not_answered_run_out_of_time_at_either_end'),
  },
  {
    name: 'dripping answers have no deadline', file: 'tcp_read.c', hangs: true,
    find: 'return silent < s->deadline_ns ? silent : s->deadline_ns;', replace: 'return silent;',
    ...faults('an_answer_that_drips_runs_out_of_time'),
  },
  {
    name: 'bytes do not buy time', file: 'tcp_read.c',
    find: ' + c->outstanding_bytes * TCP_BYTE_NS', replace: '',
    ...faults('a_large_read_that_goes_on_outlives_the_time_limit_of_a_small_one'),
  },
  {
    name: 'progress does not buy time', file: 'tcp_read.c',
    find: 'if (rx != c->seen_rx) c->progress_ns = now;', replace: '',
    ...faults('a_large_read_that_goes_on_outlives_the_time_limit_of_a_small_one'),
  },
  {
    name: 'no keepalive', file: 'tcp_address.c', hangs: true,
    find: 'setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);', replace: '',
    ...faults('a_peer_whose_host_is_gone_is_found_on_idle_and_on_busy_connections'),
  },
  {
    name: 'no limit for what is not acknowledged', file: 'tcp_address.c', hangs: true,
    find: 'setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &vanished, sizeof vanished);', replace: '(void)vanished;',
    ...faults('a_peer_whose_host_is_gone_is_found_on_idle_and_on_busy_connections'),
  },
  // ---------------------------------------------------------------- the stream
  {
    name: 'a cut message is not continued first', file: 'tcp_tx.c',
    find: '    c->ring_first = sent < all && (c->ring_first || sent > 0);', replace: '    (void)all;',
    ...stress('a_stream_stays_whole_wherever_a_full_socket_cuts_it'),
  },
  {
    name: 'the rest of a cut request is dropped', file: 'tcp_tx.c',
    find: '        c->cut_bytes = (uint8_t)(end - sent);', replace: '        c->cut_bytes = 0;',
    ...stress('a_stream_stays_whole_wherever_a_full_socket_cuts_it'),
  },
  {
    name: 'the rest of cut answers is dropped', file: 'tcp_tx.c',
    find: '    c->left_bytes = n;\n', replace: '    c->left_bytes = n * 0;\n',
    ...stress('a_peer_that_does_not_read_holds_up_nobody_and_gets_everything_in_the_end'),
  },
  // ---------------------------------------------------------------- between the threads
  {
    name: 'the mark "write again" is not looked at', file: 'tcp_tx.c', hangs: true,
    find: '    __atomic_exchange_n(&c->tx_right, TCP_TX_HELD, __ATOMIC_ACQ_REL);\n    return true;',
    replace: '    __atomic_exchange_n(&c->tx_right, TCP_TX_FREE, __ATOMIC_ACQ_REL);\n    return false;',
    ...stress('what_is_sent_while_the_responder_writes_is_sent_by_it'),
  },
  {
    name: 'connections do not take turns', file: 'tcp_deliver.c',
    find: 'if (c->is_active) TAILQ_INSERT_TAIL(again, c, active_link);', replace: 'if (c->is_active) TAILQ_INSERT_HEAD(again, c, active_link);',
    ...conformance('a_flooding_peer_does_not_starve_another'),
  },
  {
    name: 'a wake that was polled away is forgotten', file: 'tcp_cq.c', hangs: true,
    find: 'cq->look_again = true;', replace: 'cq->look_again = false;',
    ...conformance('a_wake_from_another_thread_is_never_lost'),
  },
  {
    name: 'the inbox is not looked at again before sleeping', file: 'tcp_cq.c', hangs: true,
    find: 'if (__atomic_load_n(&cq->inbox, __ATOMIC_SEQ_CST)) {', replace: 'if (!cq->responder) {',
    ...conformance('no_wake_up_is_lost_between_two_ends_that_sleep_before_each_message'),
  },
  {
    name: 'DISCONNECT comes with other completions', file: 'tcp_deliver.c',
    find: 'c->down_poll == cq->polls', replace: '!c',
    ...conformance('a_rejected_peer_gets_the_reason_and_then_the_end'),
  },
  {
    name: 'a close is not said', file: 'tcp_conn.c',
    find: '    if (s == TCP_UP || (s == TCP_GREETING && !c->listener)) tcp_send_bye(c);\n', replace: '',
    ...conformance('an_orderly_end_delivers_what_was_sent_and_then_one_disconnect'),
  },
  {
    name: 'unlisten leaves those unseen who ask', file: 'tcp_listen.c', hangs: true,
    find: '    __atomic_store_n(&l->closed, 1, __ATOMIC_RELEASE);\n    tcp_cq_refuse_unseen((tcp_cq *)head->cq, l);\n', replace: '',
    ...conformance('peers_that_wait_at_a_closed_listener_are_told'),
  },
];

const objects = new Map();    // of what is not mutated, by sanitizer

function compile(directory, file, source, sanitizer) {
  const object = join(directory, `${basename(file)}-${sanitizer ?? 'plain'}.o`);
  const flags = ['-std=c11', '-D_GNU_SOURCE', '-O1', '-g', '-w', '-pthread', ...(sanitizer ? [`-fsanitize=${sanitizer}`] : [])];
  const run = spawnSync('gcc', [...flags, '-I', join(native, dirname(file)), '-c', source, '-o', object], { encoding: 'utf8' });
  if (run.status !== 0) throw new Error(run.stderr);
  return object;
}

function objectOf(directory, file, sanitizer) {
  const key = `${file} ${sanitizer}`;
  if (!objects.has(key)) objects.set(key, compile(directory, file, join(native, file), sanitizer));
  return objects.get(key);
}

function filesFor(program) {
  const of = (part) => readdirSync(join(native, part)).filter((f) => f.endsWith('.c')).map((f) => join(part, f));
  const support = of('test').filter((f) => /\/(check|fabric_conformance\w*|fabric_pair|fabric_tcp_rig|tcp_raw)\.c$/.test(f));
  return [...of('base'), ...of('fabric'), ...support, `test/${program}_test.c`];
}

function check(directory, { file, find, replace, program, test, sanitizer, hangs }) {
  const mutated = join('fabric', file);
  const source = readFileSync(join(native, mutated), 'utf8');
  const occurrences = source.split(find).length - 1;
  if (occurrences !== 1) return `the text to replace occurs ${occurrences} times in ${mutated}`;
  writeFileSync(join(directory, file), source.replace(find, () => replace));
  const others = filesFor(program).filter((f) => f !== mutated).map((f) => objectOf(directory, f, sanitizer));
  const own = compile(directory, `fabric/mutated-${file}`, join(directory, file), sanitizer);
  const program_ = join(directory, 'mutant');
  const linked = spawnSync('gcc', ['-pthread', ...(sanitizer ? [`-fsanitize=${sanitizer}`] : []), '-o', program_, ...others, own, '-ldl', '-lm'], { encoding: 'utf8' });
  if (linked.status !== 0) return linked.stderr;
  const run = spawnSync(program_, { encoding: 'utf8', timeout: LIMIT_MS, killSignal: 'SIGKILL', env: { ...process.env, FARKV_TEST: test } });
  if (run.status === 0) return run.stdout.includes(': 0 tests') ? `no test ${test}` : 'SURVIVED';
  if (run.signal === 'SIGKILL') return hangs ? undefined : 'it hangs';
  return run.stderr.includes(` ${test}: failed: `) || (sanitizer && run.stderr.includes('Sanitizer')) ? undefined : `ended by ${run.signal ?? run.status}, not by a check`;
}

const directory = mkdtempSync(join(tmpdir(), 'farkv-mutations-'));
const chosen = mutations.filter(({ name }) => name.includes(process.argv[2] ?? ''));
let failed = 0;
try {
  for (const mutation of chosen) {
    const problem = check(directory, mutation);
    if (problem) failed++;
    console.log(`${problem ? 'NOT CAUGHT' : 'caught'}  ${mutation.name}  (${mutation.test})${problem ? `: ${problem}` : ''}`);
  }
} finally {
  rmSync(directory, { recursive: true, force: true });
}
console.log(`${chosen.length - failed} of ${chosen.length} mutations caught`);
process.exitCode = failed || chosen.length === 0 ? 1 : 0;
