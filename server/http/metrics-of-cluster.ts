/** Metrics of the metadata group, of the ways between servers, and of this server's place in the cluster. */
import { histogram } from '../../core/exposition.js';
import { buckets, counter, gauge, one, type Metric, type Seen } from './metric-row.js';
import type { ScrapedMember, ScrapedNode, ScrapeStatus } from './scrape-status.js';

const voters = ({ members }: ScrapeStatus): ScrapedMember[] => members.filter(({ role }) => role === 'voter');
const peers = ({ group }: ScrapedNode): ScrapedNode['group']['peers'] => group.peers;
const isUp = ({ node }: Seen, id: string): boolean => peers(node).some((peer) => peer.id === id && peer.connected);

export const OF_CLUSTER: readonly Metric[] = [
  gauge(
    'farkv_build_info',
    '1; its label is the version',
    ({ node }) => [{ labels: { version: node.version }, value: 1 }],
    ['version'],
  ),
  gauge('farkv_uptime_seconds', 'Since the server was started', ({ node }) => one(node.uptimeMs / 1000)),
  gauge('farkv_raft_has_leader', '1: this server knows a leader of the metadata group', ({ status }) =>
    one(status.leader !== undefined),
  ),
  gauge('farkv_raft_is_leader', '1: this server leads the metadata group', ({ status, node }) =>
    one(status.leader === node.id),
  ),
  counter(
    'farkv_raft_leader_changes_total',
    'Elections of a leader of the metadata group that this server has seen',
    ({ node }) => one(node.group.leaderChanges),
  ),
  counter(
    'farkv_raft_proposals_failed_total',
    'Changes of the metadata that this server asked for, and that the group did not take in time',
    ({ node }) => one(node.group.failedProposals),
  ),
  counter(
    'farkv_raft_thread_active_seconds_total',
    'How long the thread of Raft and of the leases had work; near one second per second it is late with both',
    ({ node }) => one(node.group.activeMs / 1000),
  ),
  gauge('farkv_raft_term', 'Term of the metadata group', ({ node }) => one(node.term)),
  gauge('farkv_raft_commit_index', 'Last entry that is committed', ({ node }) => one(node.commitIndex)),
  gauge('farkv_raft_applied_index', 'Last entry that is applied here', ({ node }) => one(node.appliedIndex)),
  gauge('farkv_raft_log_bytes', 'Raft log on this disk', ({ node }) => one(node.logBytes)),
  buckets('farkv_raft_fsync_seconds', 'How long changes of the Raft log took to be written and synced', ({ node }) =>
    histogram([node.group.syncNs]),
  ),
  gauge('farkv_raft_disk_full', '1: no changes of the metadata are taken here, since the disk is full', ({ node }) =>
    one(node.group.diskFull),
  ),
  gauge('farkv_lease_held', '1: the lease from the leader lets this server answer', ({ node }) =>
    one(node.leaseHeld ?? false),
  ),
  gauge('farkv_lease_seconds_left', 'For how long that lease still runs; 0: it is over', ({ node }) =>
    one(node.leaseLeftMs === undefined ? undefined : node.leaseLeftMs / 1000),
  ),
  gauge('farkv_map_epoch', 'Number of the last change that clients must see', ({ status }) => one(status.mapEpoch)),
  gauge(
    'farkv_members',
    'Servers of the cluster by their role in the metadata group',
    ({ status }) =>
      (['voter', 'learner', 'announced'] as const).map((role) => ({
        labels: { role },
        value: status.members.filter((member) => member.role === role).length,
      })),
    ['role'],
  ),
  gauge('farkv_voters', 'Voters of the metadata group', ({ status }) => one(voters(status).length)),
  gauge('farkv_voters_up', 'Those of them that this server has a connection to, itself included', (seen) =>
    one(voters(seen.status).filter(({ id }) => id === seen.node.id || isUp(seen, id)).length),
  ),
  gauge(
    'farkv_peer_up',
    '1: there is a connection to this other server',
    ({ node }) => peers(node).map(({ id, connected }) => ({ labels: { peer: id }, value: Number(connected) })),
    ['peer'],
  ),
  gauge(
    'farkv_peer_rtt_seconds',
    'How long the last ping to this other server took, there and back',
    ({ node }) =>
      peers(node).flatMap(({ id, rttUs }) =>
        rttUs === undefined ? [] : [{ labels: { peer: id }, value: rttUs / 1e6 }],
      ),
    ['peer'],
  ),
  counter(
    'farkv_peer_send_failures_total',
    'Raft messages to this other server that could not go: no connection, or one that takes nothing',
    ({ node }) => peers(node).map(({ id, lostMessages }) => ({ labels: { peer: id }, value: lostMessages })),
    ['peer'],
  ),
  gauge('farkv_cluster_shards', 'Shards of the cluster', ({ status }) => one(status.shards.length)),
  gauge('farkv_cluster_shards_unassigned', 'Shards of the cluster without an owner', ({ status }) =>
    one(status.shards.filter(({ state }) => state === 'unassigned').length),
  ),
  gauge('farkv_moves', 'Moves of shards under way, in the cluster', ({ status }) => one(status.moves.length)),
  gauge('farkv_move_errors', 'Shards of this server whose move is delayed or was cancelled', ({ status, node }) =>
    one(status.moveErrors.filter(({ from }) => from === node.id).length),
  ),
  counter(
    'farkv_failovers_total',
    'Shards of the cluster whose owner was replaced unplanned, as this server has seen it',
    ({ node }) => one(node.group.failedOver),
  ),
  gauge(
    'farkv_certificate_expiry_timestamp_seconds',
    'When the certificate of this server ends, since 1970',
    ({ node }) => one(node.certificateEndsMs === undefined ? undefined : node.certificateEndsMs / 1000),
  ),
  gauge('farkv_control_connections', 'Control connections, those of servers too', ({ node }) => one(node.connections)),
  gauge('farkv_control_clients', 'Clients that follow the map', ({ node }) => one(node.clients)),
  gauge('farkv_http_listeners', 'Pages that are open', ({ listeners }) => one(listeners)),
  gauge('farkv_front_stalled_seconds', 'The thread of clients has not answered for so long', ({ node }) =>
    one((node.frontStalledMs ?? 0) / 1000),
  ),
];
