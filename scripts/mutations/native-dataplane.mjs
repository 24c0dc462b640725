/** What must not be missing from native/dataplane, each with the C test that notices. */
import { by, inFile } from './checks/in-file.mjs';

const dataplane = by('dataplane');
const life = by('dataplane_life');

export const mutations = [
  ...inFile('native/dataplane/dedup.c', [
    ['dataplane: a retry is made again', dataplane('a_retry_is_answered_and_not_made_again'),
      '        if (there == sequence) {', '        if (there == sequence && status_of(e) == IN_PROGRESS) {'],
    ['dataplane: a retry is made again by the next owner',
      by('dataplane_retry')('a_retry_of_what_an_earlier_owner_was_sent_is_indeterminate'),
      'had_owner ? now_ns + IDLE_NS : 0;', '0 * (now_ns + IDLE_NS + had_owner);'],
  ]),
  ...inFile('native/dataplane/request.c', [
    ['dataplane: a client has no quota', life('beyond_its_quota_a_client_is_told_to_come_later'),
      ': c->op_count - c->asides > g->d->c.client_quota) return FKV_BUSY;', ': false) return FKV_BUSY;'],
    ['dataplane: a ticket allows everything', dataplane('a_ticket_allows_what_it_names'),
      'if (!(c->flags & needed)) return FKV_UNAUTHORIZED;', '(void)needed;'],
  ]),
  ...inFile('native/dataplane/latency.c', [
    ['dataplane: latencies of all kinds are one',
      dataplane('each_kind_of_request_has_its_own_latencies_and_what_was_refused_has_none'),
      'request_kind(o->request.op) };', 'DATAPLANE_PUT };'],
  ]),
  ...inFile('native/dataplane/memory.c', [
    ['dataplane: what is retired is deregistered at once',
      by('dataplane_shard')('a_retired_segment_stays_readable_while_leases_are_left_that_do_not_tell_of_it'),
      'if (s->lease_until_ns <= s->g->now_ns) {', 'if (s->lease_until_ns <= UINT64_MAX) {'],
  ]),
  ...inFile('native/dataplane/group.c', [
    ['dataplane: what arrived in a pause is answered by the time of the beginning of the turn',
      by('dataplane_shard')('what_arrives_while_the_owner_is_paused_past_its_lease_is_not_answered'),
      'lease that ran when the turn began. */\n    g->now_ns = fkv_now_ns();', 'lease that ran when the turn began. */'],
  ]),
];
