/**
 * Validators of the parts of the metadata that travel: in client maps, in commands and in snapshots. Structure and
 * ranges only; whether a command makes sense in the present state is decided by machine.ts.
 */
import { parseServerAddress } from '../address.js';
import {
  boolean,
  decimal64,
  hex64,
  list,
  literal,
  maybe,
  oneOf,
  pattern,
  record,
  refuse,
  text,
  uint,
  type Check,
} from '../protocol/check.js';
import { DEVICES_MAX, PROVIDERS } from '../providers.js';
import { TENANTS_MAX } from './tenants.js';
import type {
  Barrier,
  Copy,
  CopySet,
  FabricAddress,
  FailedJoin,
  LeaseTerms,
  Member,
  Move,
  Policy,
  Recovered,
  Region,
  Server,
  Shard,
  Tenant,
} from './state.js';

/**
 * Most segments of one shard, over all providers and devices. A shard of 2 TiB in segments of 512 MiB, for two
 * providers, has 8,192.
 */
export const REGIONS_MAX = 8192;
export const MEMBERS_MAX = 64;
export const SHARDS_MAX = 4096;
export const WORKERS_MAX = 64;
/** Of one shard: the owner's, and as many backups as REPLICA_PEERS of native/replication/rules/replica.h. */
export const COPIES_MAX = 5;
/** Ownership epochs are the high 20 bits of versions (native/table/layout.h). */
export const EPOCH_MAX = 2 ** 20 - 1;

export const memberId = pattern(
  /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/,
  'a member id (letters, digits, . _ -; at most 63)',
);
const provider = oneOf(...PROVIDERS);
export const deviceNumber = maybe(uint(DEVICES_MAX - 1));
const address = text(300);
const uint32 = uint(2 ** 32 - 1);
export const shardNumber = uint(SHARDS_MAX - 1);
export const workerNumber = uint(WORKERS_MAX - 1);
export const epochNumber = uint(EPOCH_MAX);
export const layoutNumber = uint32;
export const raftNumber = uint();
export const votersMax = uint(MEMBERS_MAX);
/** As the data plane counts configs (native/replication/rules/replica.h). */
export const configNumber = uint32;
export const lsnNumber = uint();
export const rankNumber = uint(255);
/** Milliseconds since 1970, as far as a Date goes. */
export const wallMs = uint(8_640_000_000_000_000);
export const zoneName = text(63);
const leaseMs = uint(3_600_000);
const driftPpm = uint(1_000_000);

export const checkFabricAddress = record<FabricAddress>({
  provider,
  address,
  worker: workerNumber,
  device: deviceNumber,
  host: maybe(text(128)),
});
export const checkFabricAddresses = list(checkFabricAddress, 1024);
/** host:port of a control port, or of a port between servers: every server connects to it. */
const controlAddress: Check<string> = (value, at) => {
  const known = address(value, at);
  try {
    parseServerAddress(known);
  } catch {
    refuse(at, 'an address such as 127.0.0.1:7400');
  }
  return known;
};
export const checkAddresses = list(controlAddress, 64);

export const checkMember = record<Member>({
  id: memberId,
  raftId: uint(),
  incarnation: hex64,
  control: checkAddresses,
  peer: maybe(checkAddresses),
  fabric: checkFabricAddresses,
  memoryBytes: uint(),
  instance: maybe(hex64),
  zone: maybe(zoneName),
});

export const checkRegion = record<Region>({
  provider,
  device: deviceNumber,
  kind: oneOf('index', 'heap'),
  segment: uint(65_535),
  tag: uint32,
  bytes: uint(),
  remoteAddress: decimal64,
  rkey: decimal64,
});
export const checkRegions = list(checkRegion, REGIONS_MAX);

export const checkShard = record<Shard>({
  shard: shardNumber,
  owner: maybe(memberId),
  worker: workerNumber,
  epoch: epochNumber,
  incarnation: maybe(hex64),
  layoutEpoch: layoutNumber,
  buckets: layoutNumber,
  regions: checkRegions,
});

export const checkServer = record<Server>({
  id: memberId,
  raftId: raftNumber,
  instance: maybe(hex64),
  control: checkAddresses,
  peer: maybe(checkAddresses),
  draining: boolean,
});
export const checkMove = record<Move>({ shard: shardNumber, to: memberId, planned: uint() });
export const checkLeaseTerms = record<LeaseTerms>({ leaseMs, driftPpm });
export const checkTenants = list(record<Tenant>({ name: memberId, shards: uint(SHARDS_MAX) }), TENANTS_MAX);

const checkBarrier = record<Barrier>({ epoch: epochNumber, lsn: lsnNumber });
export const checkCopy = record<Copy>({
  member: memberId,
  start: hex64,
  id: maybe(hex64),
  worker: workerNumber,
  state: oneOf('joining', 'in-sync', 'eligible'),
  rank: rankNumber,
  renounced: maybe(literal(true)),
  recovered: maybe(record<Recovered>({ epoch: epochNumber, lsn: lsnNumber, early: maybe(literal(true)) })),
});
export const checkCopySet = record<CopySet>({
  config: configNumber,
  barrier: maybe(checkBarrier),
  handed: maybe(epochNumber),
  copies: list(checkCopy, MEMBERS_MAX),
  failed: maybe(
    list(record<FailedJoin>({ member: memberId, start: hex64, epoch: epochNumber, times: uint() }), MEMBERS_MAX),
  ),
});
/** Fields of a policy; whether they fit together is decided by reduce-copies.ts. */
export const policyShape = {
  level: oneOf('cache', 'replicated', 'durable'),
  replicas: uint(COPIES_MAX),
  minInSync: uint(COPIES_MAX),
  onLoss: oneOf('wait', 'empty'),
} as const;
export const checkPolicy = record<Policy>(policyShape);
