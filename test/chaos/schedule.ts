/**
 * Which faults happen when: drawn from a seed before the run begins, so that a seed means the same faults at the same
 * times. Not for: making them happen (nemesis.ts).
 */
import type { Random } from '../support/random.js';

/** `early`: durable values that are answered before disks have them. */
export type Level = 'cache' | 'replicated' | 'durable' | 'early';

/**
 * Where shards have copies. All but the last leave a copy of every shard in sync, as far as there is one: docs/chaos.md
 * says how that is known.
 */
export type CopyFault =
  /** SIGKILL; it is started again after `forMs`. */
  | { readonly kind: 'kill'; readonly server: number; readonly forMs: number }
  /** SIGTERM, then started again at once: its shards change hands, its join is a change of the metadata. */
  | { readonly kind: 'restart'; readonly server: number; readonly forMs: number }
  /** The metadata leader and the owner of some shard, at once. */
  | { readonly kind: 'kill-owner-and-leader'; readonly forMs: number }
  /** A backup, and when all copies are in sync again the server that was the owner. */
  | { readonly kind: 'kill-backup-then-owner'; readonly shard: number; readonly forMs: number }
  /** The owner and its backup do not hear each other from just before the owner is killed. */
  | { readonly kind: 'cut-backup-kill-owner'; readonly shard: number; readonly forMs: number }
  /** The backup stands still from just before its owner is killed. */
  | { readonly kind: 'stop-backup-kill-owner'; readonly shard: number; readonly forMs: number }
  /** Killed, and again while it makes its copies. */
  | { readonly kind: 'kill-joiner'; readonly server: number; readonly forMs: number }
  /** A shard is handed over, and so long after an operator asked for it the one or the other of the two is killed. */
  | {
      readonly kind: 'kill-in-handover';
      readonly shard: number;
      readonly whom: 'giver' | 'taker';
      readonly afterMs: number;
      readonly forMs: number;
    }
  /** The owner of a shard whose table grows at that moment. */
  | { readonly kind: 'kill-grower'; readonly forMs: number }
  /** Beyond what is promised: all servers that have the shard, at once. */
  | {
      readonly kind: 'kill-all-copies';
      readonly shard: number;
      readonly forMs: number;
      readonly onLoss: 'wait' | 'empty';
    };

/** Where values are on disks as well: each server goes on with its data directory. */
export type DiskFault =
  /** SIGKILL of all servers at once, `loadMs` after all shards are served; they are started again after `forMs`. */
  | {
      readonly kind: 'kill-all';
      readonly loadMs: number;
      readonly forMs: number;
      /** So long after that all are killed once more: while they recover, or begin to serve. */
      readonly againMs?: number;
    }
  /** Killed, and so long after it was started killed again: while it recovers or joins. */
  | { readonly kind: 'kill-returning'; readonly server: number; readonly forMs: number; readonly againMs: number };

/** Servers, hosts and clients are numbered from 0. */
export type Fault =
  | CopyFault
  | DiskFault
  | { readonly kind: 'pause'; readonly server: number; readonly forMs: number }
  /** The metadata leader and so many others that those that run are no majority, together. */
  | { readonly kind: 'pause-majority'; readonly forMs: number }
  /** All servers together, as when their host is suspended. */
  | { readonly kind: 'suspend'; readonly forMs: number }
  /** The metadata leader for STALL_MS of each second. */
  | { readonly kind: 'stall-leader'; readonly forMs: number }
  /** These hosts and the others do not hear each other. */
  | { readonly kind: 'cut'; readonly hosts: readonly number[]; readonly forMs: number }
  /** The others do not hear these hosts. */
  | { readonly kind: 'mute'; readonly hosts: readonly number[]; readonly forMs: number }
  /** These hosts do not hear the others. */
  | { readonly kind: 'deafen'; readonly hosts: readonly number[]; readonly forMs: number }
  /**
   * An operator moves a shard, or takes all of a server's away and lets them come again after `forMs`; the values go
   * along.
   */
  | { readonly kind: 'move'; readonly shard: number; readonly server: number }
  | { readonly kind: 'drain'; readonly server: number; readonly forMs: number }
  | { readonly kind: 'kill-client'; readonly client: number; readonly forMs: number }
  | { readonly kind: 'pause-client'; readonly client: number; readonly forMs: number };

export interface Planned {
  /** Milliseconds from the beginning of the workload. */
  readonly atMs: number;
  readonly fault: Fault;
}

export interface ScheduleOptions {
  readonly seconds: number;
  readonly servers: number;
  readonly shards: number;
  readonly clients: number;
  /** Owners' leases: what is to outlast them takes longer. */
  readonly ownerLeaseMs: number;
  /** Only these kinds; by default all. */
  readonly only?: readonly Fault['kind'][] | undefined;
  /** There are hosts that can be cut off. */
  readonly network: boolean;
  /** Of the values. Where it is replicated faults of servers come one after the other. Default: cache. */
  readonly level?: Level;
}

export const STALL_MS = 200;
const WEIGHTS = {
  kill: 20,
  restart: 8,
  pause: 20,
  'pause-majority': 10,
  suspend: 5,
  'stall-leader': 6,
  cut: 16,
  mute: 8,
  deafen: 8,
  move: 40,
  drain: 8,
  'kill-client': 8,
  'pause-client': 12,
} as const;
/** Moves of shards with copies are handovers. */
const COPY_WEIGHTS = {
  ...WEIGHTS,
  kill: 40,
  move: 12,
  'kill-owner-and-leader': 14,
  'kill-backup-then-owner': 10,
  'stop-backup-kill-owner': 12,
  'cut-backup-kill-owner': 16,
  'kill-joiner': 12,
  'kill-grower': 10,
  'kill-in-handover': 16,
  'kill-all-copies': 4,
} as const;
/** What ends one process after the other, or none: with that nothing is lost. */
const EARLY_WEIGHTS = {
  ...WEIGHTS,
  kill: 60,
  move: 0,
  'pause-majority': 4,
  suspend: 3,
  'kill-backup-then-owner': 20,
  'kill-joiner': 20,
} as const;
/** Nobody looks before a process is ended: any fault may meet any other. */
const DISK_WEIGHTS = { ...WEIGHTS, 'pause-majority': 4, suspend: 3, 'kill-all': 120, 'kill-returning': 16 } as const;
/** A request that waits for its turn, and a handover. */
const HANDOVER_MS = 60;
/** Beyond the time that servers take to start, recover and serve again. */
const RETURN_MS = 3000;
/** A server that was killed or stopped is counted as away for so long after it was told to come back. */
const RECOVERY_MS = 2500;
/**
 * Before and after a fault of many servers nothing else happens to servers, so that what they lose then has no other
 * cause.
 */
const QUIET_MS = 3500;
type Weights = Readonly<Partial<Record<Fault['kind'], number>>>;
const WEIGHTS_AT: Readonly<Record<Level, Weights>> = {
  cache: WEIGHTS,
  replicated: COPY_WEIGHTS,
  durable: DISK_WEIGHTS,
  early: EARLY_WEIGHTS,
};
const weightsAt = (level: Level): Weights => WEIGHTS_AT[level];
/** Faults of servers come one after the other, and what ends a process waits until all copies are in sync. */
export const isInTurn = (level: Level): boolean => level === 'replicated' || level === 'early';
export const KINDS = Object.keys({ ...COPY_WEIGHTS, ...DISK_WEIGHTS }) as Fault['kind'][];
export const kindsAt = (level: Level): readonly Fault['kind'][] => {
  const weights = weightsAt(level);
  return KINDS.filter((kind) => (weights[kind] ?? 0) > 0);
};

export function drawSchedule(random: Random, options: ScheduleOptions): Planned[] {
  const plan: Planned[] = [];
  const busyUntil = Array.from({ length: options.servers }, () => 0);
  const clientBusyUntil = Array.from({ length: options.clients }, () => 0);
  const { level = 'cache', only } = options;
  const replicated = isInTurn(level);
  const weights = weightsAt(level);
  const kinds = kindsAt(level).filter(
    (kind) =>
      (options.network || !['cut', 'mute', 'deafen', 'cut-backup-kill-owner'].includes(kind)) &&
      only?.includes(kind) !== false,
  );
  if (kinds.length === 0) return plan;
  const weightOf = (kind: Fault['kind']): number => weights[kind] ?? 0;
  const weight = kinds.reduce((sum, kind) => sum + weightOf(kind), 0);

  function drawKind(): Fault['kind'] {
    let at = random.below(weight);
    return kinds.find((kind) => (at -= weightOf(kind)) < 0) ?? kinds[0]!;
  }

  const endMs = 1000 * options.seconds;
  for (let atMs = 500 + random.below(1500); atMs < endMs - 500; atMs += 300 + random.below(3200)) {
    const kind = drawKind();
    if (kind === 'pause-majority' || kind === 'suspend') {
      const forMs = options.ownerLeaseMs + 500 + random.below(2000);
      atMs = Math.max(atMs, ...busyUntil.map((until) => until + QUIET_MS));
      plan.push({ atMs, fault: { kind, forMs } });
      busyUntil.fill(atMs + forMs + QUIET_MS);
      continue;
    }
    if (kind === 'stall-leader') {
      plan.push({ atMs, fault: { kind, forMs: 2000 + random.below(4000) } });
      continue;
    }
    // Mostly a majority is left; now and then it is not.
    const most = random.below(10) === 0 ? options.servers : Math.floor((options.servers - 1) / 2);
    const away = busyUntil.filter((until) => until > atMs).length;
    const free = busyUntil.flatMap((until, i) => (until > atMs ? [] : [i]));
    const forMs = 100 + random.below(random.below(3) === 0 ? 6000 : 2500);
    if (kind === 'move') {
      // In bursts: what is on its way may be called off, or sent elsewhere.
      for (let i = random.below(4); i >= 0; i--)
        plan.push({
          atMs: atMs + random.below(1000),
          fault: { kind, shard: random.below(options.shards), server: random.below(options.servers) },
        });
      continue;
    }
    if (kind === 'drain') {
      plan.push({ atMs, fault: { kind, server: random.below(options.servers), forMs: forMs + 1500 } });
      continue;
    }
    if (kind === 'kill-client' || kind === 'pause-client') {
      const idle = clientBusyUntil.flatMap((until, i) => (until > atMs ? [] : [i]));
      if (idle.length === 0) continue;
      const client = random.pick(idle);
      clientBusyUntil[client] = atMs + forMs + 500;
      plan.push({ atMs, fault: { kind, client, forMs } });
      continue;
    }
    if (kind === 'kill-all') {
      const again = random.below(3) === 0 ? { againMs: random.below(RETURN_MS) } : {};
      plan.push({ atMs, fault: { kind, loadMs: 400 + random.below(1600), forMs: random.below(500), ...again } });
      continue;
    }
    if (kind === 'kill-owner-and-leader' || kind === 'kill-grower') {
      plan.push({ atMs, fault: { kind, forMs } });
      continue;
    }
    if (kind === 'kill-backup-then-owner' || kind === 'stop-backup-kill-owner' || kind === 'cut-backup-kill-owner') {
      plan.push({ atMs, fault: { kind, shard: random.below(options.shards), forMs } });
      continue;
    }
    if (kind === 'kill-in-handover') {
      const whom = random.pick(['giver', 'taker'] as const);
      const shard = random.below(options.shards);
      plan.push({ atMs, fault: { kind, shard, whom, afterMs: random.below(HANDOVER_MS), forMs } });
      continue;
    }
    if (kind === 'kill-all-copies') {
      const onLoss = random.below(2) === 0 ? 'wait' : 'empty';
      plan.push({ atMs, fault: { kind, shard: random.below(options.shards), forMs, onLoss } });
      continue;
    }
    if (!replicated && (free.length === 0 || away >= most)) continue;
    // One after the other, they find every server there.
    const server = replicated ? random.below(options.servers) : random.pick(free);
    if (kind === 'cut' || kind === 'mute' || kind === 'deafen') {
      const second = replicated ? random.below(options.servers) : random.pick(free);
      const hosts =
        second !== server && (replicated || away + 2 <= most) && random.below(2) === 0 ? [server, second] : [server];
      for (const host of hosts) busyUntil[host] = atMs + forMs + 500;
      plan.push({ atMs, fault: { kind, hosts, forMs } });
    } else if (kind === 'kill-returning') {
      const againMs = random.below(RETURN_MS);
      busyUntil[server] = atMs + forMs + againMs + RECOVERY_MS;
      plan.push({ atMs, fault: { kind, server, forMs, againMs } });
    } else {
      busyUntil[server] = atMs + forMs + (kind === 'pause' ? 500 : RECOVERY_MS);
      plan.push({ atMs, fault: { kind, server, forMs } });
    }
  }
  return plan;
}
