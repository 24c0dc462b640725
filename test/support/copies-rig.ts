/** Shards with copies, for tests of core/shards: as far as tests have in common, at the server of a copy and at the owner. */
import type { Command } from '../../core/metadata/commands.js';
import { CopyLog } from './copy-log.js';
import { hexOf } from './metadata-log.js';
import { Rig } from './shards-rig.js';

/** What asking the log is like for these tests. */
export class Copies extends Rig<CopyLog> {
  /** The id under which the metadata has the copy of this server. */
  get id(): string {
    return this.log.copy(this.shards.memberId)!.id!;
  }

  /** This server is to have a copy: it is made, gets its name, and follows the owner. */
  joins(): void {
    this.see(this.add(this.shards.memberId));
    this.done('open');
    this.done('copy');
    this.applied();
    this.done('follow');
  }

  add(member: string): Command {
    return { t: 'copies-add', copies: [{ ...this.log.name, member, start: this.log.start(member), rank: 1 }] };
  }

  removed(member: string): Command {
    return { t: 'copies-removed', by: this.log.byOwner, copies: [this.log.removal(member)] };
  }

  /** Not by its owner. */
  freed(member: string): Command {
    return { t: 'copies-removed', copies: [this.log.removal(member, false)] };
  }

  taken(to: string, copy: string): Command {
    const { shard, epoch, config } = this.log.name;
    const owner = this.log.owner!;
    return {
      t: 'shards-taken',
      id: owner,
      incarnation: this.log.start(owner),
      shards: [{ shard, epoch, config, to, copy }],
    };
  }
}

/** The first server that does not own the shard is to have a copy. */
export function backup(policy = {}): Copies {
  const log = new CopyLog(policy);
  const [id = ''] = log.others;
  const rig = new Copies(log, id, log.start(id));
  rig.see();
  rig.see(rig.add(id));
  return rig;
}

/** It is named, and becomes a backup. */
export function joining(policy = {}): Copies {
  const rig = backup(policy);
  rig.done('open');
  rig.done('copy');
  rig.applied();
  return rig;
}

export function following(policy = {}): Copies {
  const rig = joining(policy);
  rig.done('follow');
  return rig;
}

export function inSync(policy = {}): Copies {
  const rig = following(policy);
  rig.see(rig.log.inSync(rig.shards.memberId, rig.id));
  return rig;
}

/** The shard is this server's, and the metadata has its regions. `worker`: that was to open it. */
export function opened(policy = {}, worker = 0): Copies {
  const log = new CopyLog(policy, 4, false);
  const rig = new Copies(log, log.owner ?? '', log.start(log.owner ?? ''), 99);
  rig.shards.see({ ...log.state, shards: log.state.shards.map((s) => ({ ...s, worker })) });
  rig.asked();
  rig.done('open');
  log.open(0, 100);
  return rig;
}

/** The shard is this server's, and open; it has waited for the leases of the last run, and waits for a first copy. */
export function unserved(servers = 4, waits = true): Copies {
  const log = new CopyLog({}, servers, false);
  const rig = new Copies(log, log.owner ?? '', log.start(log.owner ?? ''), 99);
  rig.see();
  rig.done('open');
  log.openNew(0, 100);
  rig.see();
  rig.done('announce');
  rig.done('configure');
  rig.shards.lastRunOver();
  if (waits) rig.asked();
  return rig;
}

/** The shard is this server's, and served; `others` have been added and are named 2001 and so on. */
export function owner(policy = {}, others = 1, worker = 0): Copies {
  const rig = opened(policy, worker);
  const { log } = rig;
  rig.see();
  rig.done('announce');
  rig.shards.lastRunOver();
  rig.asked();
  rig.done('serve');
  rig.done('configure');
  log.others.slice(0, others).forEach((member, i) => {
    rig.see(rig.add(member));
    const [start, copy] = [log.start(member), hexOf(2001 + i)];
    rig.see({ t: 'copy-named', ...log.name, member, start, copy, worker: 1 });
  });
  return rig;
}

/** Its first copy is in sync. */
export function kept(policy = {}, worker = 0): Copies {
  const rig = owner(policy, 1, worker);
  rig.notices(hexOf(2001), 'joined');
  rig.done('require', undefined, 7);
  rig.applied();
  return rig;
}
