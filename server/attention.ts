/**
 * What of a cluster's status needs a person, and what that person can do. What mends itself is not in it: a copy that
 * joins, a shard that moves, a leader that is being elected while enough voters answer. What was chosen, and could be
 * safer, is in advice.ts.
 */
import type { DataPlaneStats } from '../native/data-plane-stats.js';
import { formatSize } from '../core/size.js';
import { RAISE_DESCRIPTORS } from './descriptors.js';
import { drainLine } from './drained-copies.js';
import { list, numbers } from './shard-words.js';
import { isNearlyFull, memoryOf, type ClusterStatus, type MemberStatus, type ShardStatus } from './status.js';
import { errnoText } from '../net/regular-file.js';

/**
 * A line each: what is wrong, and what to do, with a command or an option of a server. Empty: nobody is needed.
 */
export function attention(status: ClusterStatus, wallMs = Date.now()): string[] {
  return [
    ...ofMembers(status),
    ...status.members.flatMap((member) => ofCertificate(member, wallMs)),
    ...ofLeases(status),
    ...status.members.flatMap(ofDisk),
    ...status.members.flatMap((member) => ofMemory(member, status.shards)),
    ...ofShards(status),
    ...ofCopies(status),
  ];
}

/**
 * What is not as it should be and mends itself, a line each: what it waits for, and what to do if it does not. While no
 * server leads, or a shard is not served, there is one here or in `attention`.
 */
export function underWay(status: ClusterStatus): string[] {
  const { leader, members, shards } = status;
  const recovers = new Set(members.filter(({ node }) => node?.values?.recovering !== undefined).map(({ id }) => id));
  const fenced = new Set(members.filter(lacksLease).map(({ id }) => id));
  const full = withFullDisk(members);
  const waiting = new Map(
    members.flatMap(({ id, node }) => (node?.values?.waitsFor === undefined ? [] : [[id, node.values.waitsFor]])),
  );
  const coming = shards.filter(
    ({ state, copies, owner }) =>
      state !== 'serving' &&
      copies?.gone !== true &&
      copies?.awaits === undefined &&
      (state !== 'unreachable' || copies !== undefined) &&
      !recovers.has(owner ?? '') &&
      !fenced.has(owner ?? '') &&
      !full.has(owner ?? '') &&
      copies?.copies.some(({ member }) => waiting.has(member)) !== true,
  );
  const fresh = coming.filter(({ state }) => state === 'unassigned');
  const held = coming.filter(({ state }) => state !== 'unassigned');
  if (leader === undefined)
    return lacksMajority(members)
      ? []
      : [
          'no server leads: one is elected within seconds once more than half of the voters reach each other; else look at their logs',
        ];
  return [
    ...(shards.length === 0
      ? ['the cluster has no shards yet: its first start waits for more than half of its servers']
      : []),
    ...(fresh.length === 0
      ? []
      : [
          `${numbers(fresh)}: no server has ${fresh.length === 1 ? 'it' : 'them'} yet: the leader waits for servers that have not come, for a while; if it stays so, look at the log of ${leader}`,
        ]),
    ...(held.length === 0
      ? []
      : [
          `${numbers(held)}: not served yet: a new owner waits until the lease of the last one has ended; if it stays so, look at the log of ${leader}`,
        ]),
    ...[...waiting].map(
      ([id, servers]) =>
        `${id} found the write-ahead log of its values damaged, and waits for ${list(servers)} to be there with what was in it: it does not end before they have had a minute`,
    ),
    ...(recovers.size === 0 || shards.every(({ state }) => state === 'serving')
      ? []
      : [
          `${list([...recovers])} ${recovers.size === 1 ? 'reads its' : 'read their'} values from the disk: shards are served when that is done`,
        ]),
    ...members.flatMap(({ id, draining }) => (draining ? drainLine(status, id) : [])),
  ];
}

const DAY_MS = 86_400_000;
/** As the alert FarkvCertificateEnds (docs/dashboards/alerts.yml). */
const CERTIFICATE_DAYS = 14;

function ofCertificate({ id, node }: MemberStatus, wallMs: number): string[] {
  const endsMs = node?.certificateEndsMs ?? Infinity;
  const days = Math.floor((endsMs - wallMs) / DAY_MS);
  if (days >= CERTIFICATE_DAYS) return [];
  const when =
    endsMs <= wallMs
      ? 'has expired'
      : days === 0
        ? 'expires within a day'
        : `expires in ${days} day${days === 1 ? '' : 's'}`;
  return [
    `the certificate of ${id} ${when}: farkv secrets renew DIR --within ${CERTIFICATE_DAYS}, then copy it to ${id}; no restart is needed`,
  ];
}

export const votersOf = (members: readonly MemberStatus[]): MemberStatus[] =>
  members.filter(({ role }) => role === 'voter');
const answering = (members: readonly MemberStatus[]): number => members.filter(({ state }) => state === 'up').length;

/** So few voters answer that none can be elected. Before there is a cluster there are none. */
function lacksMajority(members: readonly MemberStatus[]): boolean {
  const voters = votersOf(members);
  return voters.length > 0 && 2 * answering(voters) <= voters.length;
}

/** Who is sent to one of them may reach another. */
function sharedAddresses(members: readonly MemberStatus[]): string[] {
  const at = new Map<string, string[]>();
  for (const { id, control = [], state } of members)
    for (const address of new Set(state === 'up' ? control : [])) at.set(address, [...(at.get(address) ?? []), id]);
  const shared = [...at].find(([, ids]) => ids.length > 1);
  return shared === undefined
    ? []
    : [
        `${list(shared[1])} announce the same address, ${shared[0]}, so who looks for one of them may reach another: start each again with ports of its own, the same outside where they are published (--listen, --fabric-listen, --advertise)`,
      ];
}

function ofMembers({ members, leader }: ClusterStatus): string[] {
  const silent = members.filter(({ state }) => state === 'unreachable');
  const missing = members.filter(({ state, role }) => state === 'absent' && role === 'voter');
  const voters = votersOf(members);
  return [
    ...(leader === undefined && lacksMajority(members)
      ? [
          `no server leads: ${answering(voters)} of ${voters.length} voters answer, and more than half are needed; start the others again, each with its --data-dir`,
        ]
      : []),
    // Without a leader nothing of the metadata can be changed.
    ...silent.map(
      ({ id }) =>
        `${id} does not answer: start it again, with its --data-dir, once its process has ended${leader === undefined ? '' : `; if its machine is lost, farkv member remove ${id}`}`,
    ),
    ...missing.map(
      ({ id }) => `${id} has never come: start it${leader === undefined ? '' : `, or farkv member remove ${id}`}`,
    ),
    ...sharedAddresses(members),
    ...members.flatMap(({ id, node }) =>
      node?.frontStalledMs === undefined
        ? []
        : [
            `${id} has not answered its clients and operators for ${Math.round(node.frontStalledMs / 1000)} s: look at its machine and its log; farkv status --connect at another server shows whether its shards are served all the same`,
          ],
    ),
    ...members.flatMap(({ id, node }) =>
      (node?.dataPlane?.descriptorsMissed ?? 0) === 0
        ? []
        : [
            `${id} ran out of file descriptors, and changes failed with ERR_NO_MEMORY: ${RAISE_DESCRIPTORS}; where others keep values too, farkv shard move gives them shards of it meanwhile`,
          ],
    ),
  ];
}

/** What a server itself sees of the others. */
const askedAt = ({ control }: MemberStatus): string => `farkv status --connect ${control[0] ?? 'ADDRESS'}`;

/** It has asked for one: before that its start goes on. A server that stops asks for none. */
export const lacksLease = ({ node }: MemberStatus): boolean => node?.leaseHeld === false && node.stopping !== true;

function ofLeases({ leader, members, shards }: ClusterStatus): string[] {
  const without = members.filter(lacksLease);
  if (leader !== undefined)
    return without.map(
      (member) =>
        `${member.id} has no lease from the metadata group, and answers nothing: look at its log, and at the network between it and ${leader}: ${askedAt(member)} shows which servers it reaches`,
    );
  const ids = without.map(({ id }) => id);
  const held = shards.filter(({ owner }) => owner !== undefined && ids.includes(owner));
  // An election gives them a leader, and leases with it.
  if (held.length === 0 || !lacksMajority(members)) return [];
  const voters = votersOf(members);
  const away = voters.filter(({ state }) => state !== 'up').map(({ id }) => id);
  const needed = Math.floor(voters.length / 2) + 1 - answering(voters);
  const few = needed === 1 ? 'one' : String(needed);
  const whom = needed === away.length ? list(away) : `${few} of ${list(away)}`;
  const them = away.length === 1 ? 'it' : needed === away.length ? 'them' : `${few} of them`;
  const isOne = ids.length === 1;
  return [
    `${list(ids)} ${isOne ? 'has' : 'have'} no lease, since ${isOne ? 'it reaches' : 'they reach'} no leader: ${numbers(held)} ${held.length === 1 ? 'is' : 'are'} not served until ${whom} can be reached: start ${them} again, with --data-dir; where a server runs, look at the network`,
  ];
}

/** All tables of a server share its --memory, and each has a limit of its own (tableMemory). */
export function ofMemory({ id, memoryBytes, node }: MemberStatus, shards: readonly ShardStatus[]): string[] {
  const { usedBytes: used } = memoryOf(node);
  if (isNearlyFull(used, memoryBytes))
    return [
      `${id} uses ${percent(used, memoryBytes)} of its --memory, and changes fail when it is full, also those of shards that have a copy there: add a server (farkv server --join), then farkv shard rebalance; or start ${id} again with more --memory`,
    ];
  const full = shards.filter(
    ({ owner, usedBytes, memoryLimitBytes }) => owner === id && isNearlyFull(usedBytes, memoryLimitBytes),
  );
  if (full.length === 0) return [];
  return [
    `${numbers(full)} at ${id}: more than 90 % of the memory that a shard may have is used, and changes fail when it is full. That is the --memory of all servers by the number of shards: add a server (farkv server --join), or start servers again with more --memory`,
  ];
}

const percent = (part: number, of: number): string => `${Math.floor((100 * part) / of)} %`;

function ofDisk({ id, node }: MemberStatus): string[] {
  const failed = (node?.dataPlane?.shards ?? []).filter((s) => s.snapshotErrno !== undefined);
  return [
    ...(isDiskFull(node)
      ? [
          `the disk of ${id} is full, and changes are refused: free space on the file system of its --data-dir, up to ${formatSize(fullLogs(node?.dataPlane) * LOG_AHEAD_BYTES)} for its log; changes go on by themselves within seconds`,
        ]
      : []),
    ...(node?.group.diskFull !== true
      ? []
      : [
          `the disk of ${id} is full, and it takes no changes of the metadata: free space on the file system of its --data-dir; it goes on by itself within seconds`,
        ]),
    ...(node?.values?.aside !== true
      ? []
      : [
          `${id} found the write-ahead log of its values damaged, and has put it aside: look at its disk, and remove values.damaged in its --data-dir when every shard is served with as many copies as are wanted`,
        ]),
    ...(failed.length === 0
      ? []
      : [
          `${id} has no new snapshot of shards ${list(failed.map(({ shard }) => shard))}: ${errnoText(failed[0]?.snapshotErrno ?? 0)}. Nothing is lost, but the log grows: look at the disk of its --data-dir, and at the log of ${id}; it is tried again each minute`,
        ]),
  ];
}

function ofShards({ shards, members }: ClusterStatus): string[] {
  const gone = shards.filter(({ copies }) => copies?.gone === true);
  const alone = shards.filter(({ state, copies }) => state === 'unreachable' && copies === undefined);
  const owners = [...new Set(alone.map(({ owner }) => owner ?? '-'))];
  return [
    ...(gone.length === 0
      ? []
      : [
          `${numbers(gone)}: every copy is lost; farkv shard reset all says what giving them up means, and with --accept-loss does it`,
        ]),
    ...ofAwaited(shards, members),
    ...(alone.length === 0
      ? []
      : [
          `${numbers(alone)} can be reached at no other server: their values come back with ${list(owners)}, started again with its --data-dir, or not`,
        ]),
  ];
}

/** Shards whose values only servers can bring back that are away, or that came back without what they had. */
function ofAwaited(shards: readonly ShardStatus[], members: readonly MemberStatus[]): string[] {
  const up = new Set(members.filter(({ state }) => state === 'up').map(({ id }) => id));
  const alike = new Map<string, { readonly servers: string; readonly from: string; readonly of: ShardStatus[] }>();
  for (const shard of shards) {
    const { awaits, copies = [] } = shard.copies ?? {};
    if (awaits === undefined) continue;
    const marked = copies.find((copy) => copy.marked === true && up.has(copy.member))?.member;
    const from = marked === undefined ? '' : ` --from ${marked}`;
    const servers = awaits.join(' or ');
    const { of } = alike.get(servers + from) ?? { of: [] };
    alike.set(servers + from, { servers, from, of: [...of, shard] });
  }
  return [...alike.values()].map(({ servers, from, of }) => {
    const isOne = of.length === 1;
    const reset = isOne
      ? `farkv shard reset ${list(of.map(({ shard }) => shard))}${from}`
      : `farkv shard reset SHARD${from}, for each of them,`;
    return `${numbers(of)}: no server that answers has all ${isOne ? 'its' : 'their'} values: bring ${servers} back with what it had; if that is lost, ${reset} says what is given up`;
  });
}

function ofCopies({ shards, members, replication }: ClusterStatus): string[] {
  const full = withFullDisk(members);
  const few = shards.filter(({ owner, copies }) => copies?.trouble === 'too few' && !full.has(owner ?? ''));
  const keepers = members.filter(({ witness, draining }) => witness !== true && !draining).length;
  const lacking = replication.filter(({ level, replicas }) => level !== 'cache' && replicas > keepers);
  return [
    ...(few.length === 0
      ? []
      : [
          `${numbers(few)}: no changes are taken, fewer copies are in sync than --min-in-sync asks for; start the servers that do not answer, or farkv replication set --min-in-sync`,
        ]),
    ...members.flatMap((member) => ofFull(member, members)),
    ...shards.flatMap((shard) => ofFailed(shard, members)),
    ...lacking.map(
      ({ tenant, replicas }) =>
        `${replicas} copies of each value${tenant === undefined ? '' : ` of ${tenant}`} are wanted, and ${keepers === 1 ? 'one server keeps' : `${keepers} servers keep`} values: add servers (farkv server --join), or want fewer copies (farkv replication set --replicas)`,
    ),
  ];
}

/** What lacks memory is told of its server. */
function ofFailed({ shard, owner, copies }: ShardStatus, members: readonly MemberStatus[]): string[] {
  const failed = (copies?.notCopied ?? []).filter(({ full }) => full !== true);
  if (failed.length === 0) return [];
  const where = list(failed.map(({ member }) => member));
  const asked = members.filter(({ id }) => failed.some(({ member }) => member === id)).map(askedAt);
  return [
    `no copy of shard ${shard} could be made at ${where} of what ${owner ?? 'nobody'} has: the log of ${where} says why; look at the network between the two. ${list(asked)} shows whether ${owner ?? 'its owner'} is reached, farkv doctor what is wrong with RDMA. It is tried again, later and later`,
  ];
}

/** Where the disk is full, that comes first: its copies take changes again with the disk, or are made anew. */
export function ofFull({ id, draining, node }: MemberStatus, members: readonly MemberStatus[]): string[] {
  const shards = node?.fullCopies ?? [];
  if (shards.length === 0 || isDiskFull(node)) return [];
  const which =
    shards.length === 1
      ? `the copy of shard ${list(shards)} at ${id} has no room for what its owner has`
      : `the copies of shards ${list(shards)} at ${id} have no room for what their owners have`;
  const more = `${which}: start ${id} again with more --memory`;
  const others = members.filter((m) => m.draining && m.id !== id).map((m) => m.id);
  // What a drained server has needs room elsewhere: another one that is drained makes that worse.
  if (others.length > 0)
    return [
      `${more}, add a server (farkv server --join), or keep ${list(others)}, which ${others.length === 1 ? 'is' : 'are'} being drained (${others.map((other) => `farkv drain ${other} --undo`).join('; ')})`,
    ];
  return [
    draining
      ? `${more}, or add a server (farkv server --join)`
      : `${more}; or add a server (farkv server --join), then farkv drain ${id}`,
  ];
}

/** Two files, which a log has ready before it goes on (native/log/files.h, LOG_FILE_BYTES in native/replication/replication.h). */
export const LOG_AHEAD_BYTES = 2 * (64 << 20);

/** Each thread of the data plane has a log. */
export function fullLogs(dataPlane: Pick<DataPlaneStats, 'workers'> | undefined): number {
  return (dataPlane?.workers ?? []).filter(({ log }) => log?.diskFull === true).length;
}

/** Their shards wait for the disk, whatever else is said of them. */
function withFullDisk(members: readonly MemberStatus[]): ReadonlySet<string> {
  return new Set(members.filter(({ node }) => isDiskFull(node)).map(({ id }) => id));
}

export function isDiskFull(node: MemberStatus['node']): boolean {
  return fullLogs(node?.dataPlane) > 0;
}
