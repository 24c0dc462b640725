/**
 * Faults of servers whose shards have copies. What ends a process waits until all copies are in sync, looks where they
 * are, and writes that down before it strikes (promise.ts). Not for: drawing them (schedule.ts).
 */
import type { ClusterStatus } from '../../server/status.js';
import type { ServerProcess } from '../support/cluster.js';
import type { FaultLog } from './fault-log.js';
import type { Filling } from './filling.js';
import { inSyncOf, isCurrent, isWhole, lostWith, PARTED_NS, type Look } from './promise.js';
import type { CopyFault } from './schedule.js';

/** What the nemesis does for these faults. */
export interface Hands {
  readonly servers: readonly ServerProcess[];
  readonly log: FaultLog;
  readonly say: (text: string) => void;
  readonly stopped: (server: ServerProcess) => void;
  /** The run is to fail, for this reason. */
  readonly failed: (why: string) => void;
  readonly over: () => boolean;
  readonly wait: (ms: number) => Promise<void>;
  /** Of one that answers; undefined: none does. */
  readonly status: (of?: string) => Promise<ClusterStatus | undefined>;
  readonly ask: (method: string, args: unknown) => Promise<boolean>;
  readonly fill: () => Promise<Filling>;
  /** Two servers do not hear each other until what it resolves with is called. */
  readonly cut: (one: number, other: number) => Promise<() => Promise<void>>;
}

export interface CopyPolicy {
  readonly replicas: number;
  readonly minInSync: number;
}

type Seen = Omit<Look, 'ended' | 'stopped' | 'beyond' | 'toNs'>;

/** A busy machine makes copies slowly. */
const WHOLE_MS = 90_000;
const LOOK_MS = 50;
/** Tables that did not grow in this time were large enough. */
const GROWTH_MS = 20_000;
/** Changes are under way then, and wait for the backup. */
const PARTED_MS = 300;
const now = (): number => Number(process.hrtime.bigint());

export class CopyFaults {
  readonly #hands: Hands;
  readonly #policy: CopyPolicy;

  constructor(hands: Hands, policy: CopyPolicy) {
    this.#hands = hands;
    this.#policy = policy;
  }

  /** Waits until every copy is in sync; undefined: that did not come to pass, and the run has failed. */
  async whole(): Promise<Seen | undefined> {
    const { failed } = this.#hands;
    const until = performance.now() + WHOLE_MS;
    let status: ClusterStatus | undefined;
    while (!this.#hands.over()) {
      const fromNs = now();
      status = await this.#current();
      if (status !== undefined && isWhole(status))
        return { fromNs, inSync: inSyncOf(status), owners: status.shards.map((s) => s.owner) };
      if (performance.now() > until) {
        failed(`the copies were not in sync ${WHOLE_MS} ms after the last fault\n${troubleOf(status)}`);
        return undefined;
      }
      await this.#hands.wait(LOOK_MS);
    }
    return undefined;
  }

  /** False: there was nobody to whom it could be done. */
  async make(fault: CopyFault): Promise<boolean> {
    const { servers } = this.#hands;
    switch (fault.kind) {
      case 'kill':
      case 'restart':
        return await this.#end(fault.forMs, fault.kind === 'kill' ? 'SIGKILL' : 'SIGTERM', () => [
          servers[fault.server]!.id,
        ]);
      case 'kill-owner-and-leader': {
        const leader = (await this.#current())?.leader;
        return await this.#end(fault.forMs, 'SIGKILL', ({ inSync, owners }) => {
          const ended = owners
            .map((owner) => [owner, leader].filter((one) => one !== undefined))
            .find((both) => both[0] !== both[1] && lostWith({ inSync, ended: both }).length === 0);
          // Who owns a shard and leads too is both of them.
          return ended ?? (owners.includes(leader) && leader !== undefined ? [leader] : []);
        });
      }
      case 'kill-backup-then-owner': {
        const { shard, forMs } = fault;
        let owner: string | undefined;
        const first = await this.#end(forMs, 'SIGKILL', ({ inSync, owners }) => {
          owner = owners[shard];
          return inSync[shard]!.filter((one) => one !== owner).slice(0, 1);
        });
        return first && (await this.#end(forMs, 'SIGKILL', () => (owner === undefined ? [] : [owner])));
      }
      case 'stop-backup-kill-owner':
      case 'cut-backup-kill-owner':
        return await this.#partAndEnd(fault);
      case 'kill-joiner':
        return await this.#endJoiner(fault.server, fault.forMs);
      case 'kill-grower':
        return await this.#endGrower(fault.forMs);
      case 'kill-all-copies':
        return await this.#endAll(fault);
    }
  }

  async #end(
    forMs: number,
    signal: 'SIGKILL' | 'SIGTERM',
    choose: (seen: Seen) => readonly string[],
  ): Promise<boolean> {
    const seen = await this.whole();
    const ended = seen === undefined ? [] : choose(seen);
    if (seen === undefined || ended.length === 0 || lostWith({ ...seen, ended }).length > 0) return false;
    await this.#strike({ ...seen, ended, stopped: [], beyond: false }, signal, forMs);
    return true;
  }

  /**
   * The backup hears nothing of its owner's last changes, so none of them may have been answered. Its copy stays in
   * sync: the owner dies before it could have had it removed.
   */
  async #partAndEnd({
    kind,
    shard,
    forMs,
  }: Extract<CopyFault, { kind: 'stop-backup-kill-owner' | 'cut-backup-kill-owner' }>): Promise<boolean> {
    const { servers, log } = this.#hands;
    const seen = await this.whole();
    const owner = seen?.owners[shard];
    const backup = seen?.inSync[shard]?.find((one) => one !== owner);
    if (seen === undefined || owner === undefined || backup === undefined) return false;
    const server = this.#server(backup);
    const partedNs = now();
    let join: () => void | Promise<void>;
    if (kind === 'cut-backup-kill-owner')
      join = await this.#hands.cut(servers.indexOf(this.#server(owner)), servers.indexOf(server));
    else {
      const goesOn = log.begin({ server: backup, kind: 'stopped' });
      server.signal('SIGSTOP');
      join = () => {
        server.signal('SIGCONT');
        goesOn();
      };
    }
    await this.#hands.wait(PARTED_MS);
    const inTime = now() - partedNs < PARTED_NS;
    if (inTime)
      await this.#strike({ ...seen, ended: [owner], stopped: [backup], beyond: false }, 'SIGKILL', forMs, join);
    else await join();
    return inTime;
  }

  /** Killed, and killed again while it makes its copies anew. */
  async #endJoiner(at: number, forMs: number): Promise<boolean> {
    const { id } = this.#hands.servers[at]!;
    if (!(await this.#end(forMs, 'SIGKILL', () => [id]))) return false;
    const until = performance.now() + WHOLE_MS;
    while (!this.#hands.over() && performance.now() < until) {
      const fromNs = now();
      const status = await this.#current();
      const joins = status?.shards.some(({ copies }) =>
        copies?.copies.some(({ member, state }) => member === id && state === 'joining'),
      );
      if (status !== undefined && joins === true) {
        const seen = { fromNs, inSync: inSyncOf(status), owners: status.shards.map((s) => s.owner) };
        if (lostWith({ ...seen, ended: [id] }).length > 0) return true;
        await this.#strike({ ...seen, ended: [id], stopped: [], beyond: false }, 'SIGKILL', forMs);
        return true;
      }
      if (status !== undefined && isWhole(status)) return true;
      await this.#hands.wait(5);
    }
    return true;
  }

  /** Tables are filled, and the first owner whose table has another layout is killed while that goes on. */
  async #endGrower(forMs: number): Promise<boolean> {
    if ((await this.whole()) === undefined) return false;
    const layouts = (await this.#current())?.shards.map((s) => s.layoutEpoch);
    if (layouts === undefined) return false;
    const filling = await this.#hands.fill();
    try {
      const struck = await this.#endFirst(
        forMs,
        ({ shards }) => shards.find((s) => s.layoutEpoch > layouts[s.shard]!)?.owner,
      );
      await filling.stop();
      if ((await this.whole()) === undefined) return false;
      const missing = await filling.missing();
      if (missing.length > 0)
        this.#hands.failed(`${missing.length} keys that were acknowledged while tables grew are lost: ${missing[0]}`);
      return struck;
    } finally {
      await filling.remove();
    }
  }

  /** Looks until all copies are in sync and there is somebody to kill; false: that did not come to pass in time. */
  async #endFirst(forMs: number, choose: (status: ClusterStatus) => string | undefined): Promise<boolean> {
    const until = performance.now() + GROWTH_MS;
    while (!this.#hands.over() && performance.now() < until) {
      const fromNs = now();
      const status = await this.#current();
      const victim = status === undefined || !isWhole(status) ? undefined : choose(status);
      if (status !== undefined && victim !== undefined) {
        const seen = { fromNs, inSync: inSyncOf(status), owners: status.shards.map((s) => s.owner) };
        if (lostWith({ ...seen, ended: [victim] }).length > 0) return false;
        await this.#strike({ ...seen, ended: [victim], stopped: [], beyond: false }, 'SIGKILL', forMs);
        return true;
      }
      await this.#hands.wait(5);
    }
    return false;
  }

  /** Beyond the promise: what onLoss says must come to pass, and nothing else. */
  async #endAll({ shard, forMs, onLoss }: Extract<CopyFault, { kind: 'kill-all-copies' }>): Promise<boolean> {
    const { failed, ask } = this.#hands;
    const { replicas, minInSync } = this.#policy;
    const policy = (what: 'wait' | 'empty'): Promise<boolean> =>
      ask('replication-set', { level: 'replicated', replicas, minInSync, onLoss: what });
    if (onLoss === 'empty' && !(await policy('empty'))) return false;
    const seen = await this.whole();
    const ended = seen?.inSync[shard] ?? [];
    if (seen === undefined || ended.length === 0) return false;
    const lost = lostWith({ ...seen, ended });
    const over = await this.#strike({ ...seen, ended, stopped: [], beyond: true }, 'SIGKILL', forMs);
    if (onLoss === 'wait') {
      const wrong = await this.#waits(lost);
      if (wrong !== undefined) failed(wrong);
      for (let tries = 0; tries < 100 && !(await policy('empty')); tries++) await this.#hands.wait(LOOK_MS);
    }
    await this.whole();
    over();
    for (let tries = 0; tries < 100 && !(await policy('wait')); tries++) await this.#hands.wait(LOOK_MS);
    return true;
  }

  /** These shards have no owner when all others are served, and stay so; the text says what is wrong. */
  async #waits(lost: readonly number[]): Promise<string | undefined> {
    const until = performance.now() + WHOLE_MS;
    for (let calm = 0; calm < CALM_LOOKS && !this.#hands.over();) {
      const status = await this.#current();
      const served = status?.shards.filter((s) => lost.includes(s.shard) && s.state === 'serving');
      if (served !== undefined && served.length > 0)
        return `shards ${served.map((s) => s.shard).join(', ')} lost all copies and are served, though onLoss is wait\n${troubleOf(status)}`;
      const isAsTold = status?.shards.every((s) =>
        lost.includes(s.shard) ? s.owner === undefined : s.state === 'serving',
      );
      calm = isAsTold === true ? calm + 1 : 0;
      if (isAsTold !== true && performance.now() > until)
        return `shards that lost no copy were not served again\n${troubleOf(status)}`;
      await this.#hands.wait(LOOK_MS);
    }
    return undefined;
  }

  /** Ends them all at once, and starts them again. Answers what is to be called when the fault is over. */
  async #strike(
    look: Omit<Look, 'toNs'>,
    signal: 'SIGKILL' | 'SIGTERM',
    forMs: number,
    meanwhile: () => void | Promise<void> = () => undefined,
  ): Promise<() => void> {
    const { log, stopped } = this.#hands;
    const over = log.look(look);
    const servers = look.ended.map((id) => this.#server(id));
    const backs = look.ended.map((server) => log.begin({ server, kind: 'dead' }));
    await Promise.all(servers.map((server) => server.kill(signal)));
    for (const server of servers) stopped(server);
    if (signal === 'SIGKILL') await this.#hands.wait(forMs);
    await meanwhile();
    for (const back of backs) back();
    if (!this.#hands.over()) for (const server of servers) server.launch();
    if (!look.beyond) over();
    return over;
  }

  #server(id: string): ServerProcess {
    return this.#hands.servers.find((s) => s.id === id)!;
  }

  /** As the leader has it; undefined: nobody is known to lead. */
  async #current(): Promise<ClusterStatus | undefined> {
    const any = await this.#hands.status();
    if (any === undefined || isCurrent(any)) return any;
    const told = any.leader === undefined ? undefined : await this.#hands.status(any.leader);
    return told?.leader === told?.answeredBy ? told : undefined;
  }
}

const CALM_LOOKS = 20;

export function troubleOf(status: ClusterStatus | undefined): string {
  if (status === undefined) return 'no leader answered';
  const members = status.members.map((m) => `${m.id} ${m.state}${m.draining ? ' draining' : ''}`).join(', ');
  const shards = status.shards.map(
    (s) =>
      `shard ${s.shard} epoch ${s.epoch} of ${s.owner ?? 'nobody'} ${s.state}: ${(s.copies?.copies ?? []).map((c) => `${c.member} ${c.state}`).join(', ')}`,
  );
  return `${members}; leader ${status.leader ?? 'none'}\n${shards.join('\n')}`;
}
