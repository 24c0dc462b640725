/** What must not be missing from native/dataplane, each with the C test that notices. */
const by = (program) => (test) => ({ program, test });
const dataplane = by('dataplane');
const life = by('dataplane_life');

export const mutations = [
  {
    name: 'dataplane: a retry is made again',
    file: 'native/dataplane/dedup.c',
    find: '        if (there == sequence) {',
    replace: '        if (there == sequence && status_of(e) == IN_PROGRESS) {',
    caughtBy: dataplane('a_retry_is_answered_and_not_made_again'),
  },
  {
    name: 'dataplane: a retry is made again by the next owner',
    file: 'native/dataplane/dedup.c',
    find: 'had_owner ? now_ns + IDLE_NS : 0;',
    replace: '0 * (now_ns + IDLE_NS + had_owner);',
    caughtBy: by('dataplane_retry')('a_retry_of_what_an_earlier_owner_was_sent_is_indeterminate'),
  },
  {
    name: 'dataplane: a client has no quota',
    file: 'native/dataplane/request.c',
    find: ': c->op_count - c->asides > g->d->c.client_quota) return FKV_BUSY;',
    replace: ': false) return FKV_BUSY;',
    caughtBy: life('beyond_its_quota_a_client_is_told_to_come_later'),
  },
  {
    name: 'dataplane: a ticket allows everything',
    file: 'native/dataplane/request.c',
    find: 'if (!(c->flags & needed)) return FKV_UNAUTHORIZED;',
    replace: '(void)needed;',
    caughtBy: dataplane('a_ticket_allows_what_it_names'),
  },
  {
    name: 'dataplane: latencies of all kinds are one',
    file: 'native/dataplane/latency.c',
    find: 'request_kind(o->request.op) };',
    replace: 'DATAPLANE_PUT };',
    caughtBy: dataplane('each_kind_of_request_has_its_own_latencies_and_what_was_refused_has_none'),
  },
  {
    name: 'dataplane: what is retired is deregistered at once',
    file: 'native/dataplane/memory.c',
    find: 'if (s->lease_until_ns <= s->g->now_ns) {',
    replace: 'if (s->lease_until_ns <= UINT64_MAX) {',
    caughtBy: by('dataplane_shard')('a_retired_segment_stays_readable_while_leases_are_left_that_do_not_tell_of_it'),
  },
  {
    name: 'dataplane: what arrived in a pause is answered by the time of the beginning of the turn',
    file: 'native/dataplane/group.c',
    find: 'lease that ran when the turn began. */\n    g->now_ns = fkv_now_ns();',
    replace: 'lease that ran when the turn began. */',
    caughtBy: by('dataplane_shard')('what_arrives_while_the_owner_is_paused_past_its_lease_is_not_answered'),
  },
];
