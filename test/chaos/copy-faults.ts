/**
 * Faults of servers whose shards have copies. What ends a process waits until all copies are in sync, looks where they
 * are, and writes that down before it strikes (promise.ts). Not for: drawing them (schedule.ts).
 */
import type { ClusterStatus } from '../../server/status.js';
import type { ServerProcess } from '../support/cluster.js';
import type { FaultLog } from './fault-log.js';
import type { Filling } from './filling.js';
import type { Overtaken } from './overtaken.js';
import { inSyncAgain, inSyncOf, isCurrent, isWhole, lostWith, PARTED_NS, type Again, type Look } from './promise.js';
import type { CopyFault, Level } from './schedule.js';

/** What else is known of the run while it goes on. */
export interface Witness {
  /** As all servers' maps have it by now. */
  readonly latest: (shard: number) => { readonly epoch: number; readonly owner: string | undefined } | undefined;
  readonly overtaken: () => readonly Overtaken[];
}

/** What the nemesis does for these faults. */
export interface Hands {
  readonly servers: readonly ServerProcess[];
  readonly log: FaultLog;
  readonly witness: Witness;
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
  /** They are on disks too, so nothing excuses a loss, and nobody looks where they are before a process is ended. */
  readonly durable?: boolean;
  /** Changes are answered so long before they are on disks; then nobody ends all servers at once. */
  readonly syncMs?: number;
}

export const levelOf = (copies: CopyPolicy | undefined): Level =>
  copies === undefined
    ? 'cache'
    : copies.durable !== true
      ? 'replicated'
      : copies.syncMs === undefined
        ? 'durable'
        : 'early';

type Seen = Omit<Look, 'ended' | 'stopped' | 'beyond' | 'again' | 'toNs'>;

/** A busy machine makes copies slowly. */
const WHOLE_MS = 90_000;
const LOOK_MS = 50;
/** Tables that did not grow in this time were large enough. */
const GROWTH_MS = 20_000;
/** Changes are under way then, and wait for the backup; no copy has been promoted yet, unless the machine is busy. */
const PARTED_MS = 150;
/** So often an operator gives up a shard. */
const RESET_MS = 500;
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
      if (status !== undefined && isWhole(status)) return seenIn(status, fromNs);
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
      case 'kill-in-handover':
        return await this.#endInHandover(fault);
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
    return (await this.#strike({ ...seen, ended, stopped: [], beyond: false }, signal, forMs)) !== undefined;
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
    const look = { ...seen, ended: [owner], stopped: [backup], beyond: false };
    const over = now() - partedNs < PARTED_NS ? await this.#strike(look, 'SIGKILL', forMs, join) : undefined;
    if (over === undefined) await join();
    else await this.#giveUp(seen);
    over?.();
    return over !== undefined;
  }

  /** Shards of which a copy was promoted too late to be seen, and then killed: an operator gives them up. */
  async #giveUp({ fromNs }: Seen): Promise<void> {
    const { witness, say, ask } = this.#hands;
    const until = performance.now() + WHOLE_MS;
    for (const { shard, epoch, by, look } of witness.overtaken()) {
      if (look.fromNs !== fromNs) continue;
      say(`shard ${shard} was promoted at ${by} right before that was killed: it is given up`);
      while (!this.#hands.over() && performance.now() < until) {
        const s = (await this.#current())?.shards[shard];
        if (s !== undefined && s.epoch > epoch && s.owner !== undefined) break;
        if (s !== undefined && s.owner === undefined) await ask('shard-reset', { shard, acceptLoss: true });
        await this.#hands.wait(RESET_MS);
      }
    }
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
        const seen = seenIn(status, fromNs);
        if (lostWith({ ...seen, ended: [id] }).length > 0) return true;
        await this.#strike({ ...seen, ended: [id], stopped: [], beyond: false }, 'SIGKILL', forMs);
        return true;
      }
      if (status !== undefined && isWhole(status)) return true;
      await this.#hands.wait(5);
    }
    return true;
  }

  /** Whichever of the two is left has all of the shard: a giver stays a copy in sync. */
  async #endInHandover({
    shard,
    whom,
    afterMs,
    forMs,
  }: Extract<CopyFault, { kind: 'kill-in-handover' }>): Promise<boolean> {
    const seen = await this.whole();
    const giver = seen?.owners[shard];
    const taker = seen?.inSync[shard]?.find((one) => one !== giver);
    if (seen === undefined || giver === undefined || taker === undefined) return false;
    const asked = this.#hands.ask('shard-move', { shard, to: taker });
    await this.#hands.wait(afterMs);
    const look = { ...seen, ended: [whom === 'giver' ? giver : taker], stopped: [], beyond: false };
    const struck = lostWith(look).length === 0 && (await this.#strike(look, 'SIGKILL', forMs)) !== undefined;
    await asked;
    return struck;
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
        const look = { ...seenIn(status, fromNs), ended: [victim], stopped: [], beyond: false };
        if (lostWith(look).length > 0) return false;
        return (await this.#strike(look, 'SIGKILL', forMs)) !== undefined;
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
    over?.();
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

  /**
   * Ends them all at once, and starts them again. Answers what is to be called when the fault is over; undefined: by now
   * some shard has no other copy, and nobody was ended.
   */
  async #strike(
    seen: Omit<Look, 'again' | 'toNs'>,
    signal: 'SIGKILL' | 'SIGTERM',
    forMs: number,
    meanwhile: () => void | Promise<void> = () => undefined,
  ): Promise<(() => void) | undefined> {
    const { log, stopped, say } = this.#hands;
    const again = this.#again(seen);
    const lost = lostWith({ inSync: inSyncAgain(seen, again), ended: seen.ended });
    if (lost.length > 0 && !seen.beyond) {
      say(`${seen.ended.join(', ')} stays: shards ${lost.join(', ')} would lose their last copy`);
      return undefined;
    }
    const look = seen.beyond ? seen : { ...seen, again };
    const over = log.look(look);
    const servers = look.ended.map((id) => this.#server(id));
    const backs = look.ended.map((server) => log.begin({ server, kind: 'dead' }));
    await Promise.all(servers.map((server) => server.kill(signal)));
    for (const server of servers) stopped(server);
    if (signal === 'SIGKILL') await this.#hands.wait(forMs);
    await meanwhile();
    for (const back of backs) back();
    if (!this.#hands.over()) for (const server of servers) server.launch();
    if (!look.beyond && look.stopped.length === 0) over();
    return over;
  }

  #again({ inSync }: Pick<Seen, 'inSync'>): Again {
    const latest = inSync.map((_, shard) => this.#hands.witness.latest(shard));
    return { atNs: now(), epochs: latest.map((one) => one?.epoch ?? 0), owners: latest.map((one) => one?.owner) };
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

function seenIn(status: ClusterStatus, fromNs: number): Seen {
  const { shards } = status;
  return { fromNs, inSync: inSyncOf(status), owners: shards.map((s) => s.owner), epochs: shards.map((s) => s.epoch) };
}

export function troubleOf(status: ClusterStatus | undefined): string {
  if (status === undefined) return 'no leader answered';
  const members = status.members.map((m) => `${m.id} ${m.state}${m.draining ? ' draining' : ''}`).join(', ');
  const shards = status.shards.map(
    (s) =>
      `shard ${s.shard} epoch ${s.epoch} of ${s.owner ?? 'nobody'} ${s.state}: ${(s.copies?.copies ?? []).map((c) => `${c.member} ${c.state}`).join(', ')}`,
  );
  return `${members}; leader ${status.leader ?? 'none'}\n${shards.join('\n')}`;
}
