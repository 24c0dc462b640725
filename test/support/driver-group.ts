/** Members of the metadata group in one process, over disks in memory. */
import type { ExecutionContext } from 'ava';
import { FarkvError } from '../../core/errors.js';
import {
  bootstrapState,
  type HardState,
  type RaftMessage,
  type Ready,
  type RestoredState,
  type Snapshot,
} from '../../core/raft/index.js';
import { Log } from '../../server/log.js';
import { MetadataDriver, type DriverOptions } from '../../server/metadata/driver.js';
import { Proposer } from '../../server/metadata/proposer.js';
import type { Persisted } from '../../server/raft-storage/index.js';
import { chosenSeed, Random } from './random.js';

const random = new Random(chosenSeed());
export const quiet = new Log('error', () => undefined);
export class MemoryStorage {
  readonly snapshots: Snapshot[] = [];
  answer: () => Persisted = () => 'done';
  persists = 0;
  lastIndex = 0;

  persist({ entries }: Ready): Persisted {
    this.persists += 1;
    this.lastIndex = entries.at(-1)?.index ?? this.lastIndex;
    return this.answer();
  }

  saveSnapshot(snapshot: Snapshot): Persisted {
    this.snapshots.push(snapshot);
    return this.answer();
  }
}

export interface Member {
  readonly raftId: number;
  readonly storage: MemoryStorage;
  readonly driver: MetadataDriver;
  readonly proposer: Proposer;
  readonly failures: FarkvError[];
}

function withHardState(restored: RestoredState, more: Partial<HardState> = {}): RestoredState {
  return { ...restored, hardState: { ...restored.hardState, ...more } };
}

/** Members that hear each other in the same process, unless they are cut off. */
export class Group {
  readonly members: Member[] = [];
  readonly cut = new Set<number>();
  readonly sent: RaftMessage[] = [];
  readonly #changed: (() => void)[] = [];

  /** `restoredOf`: what a member's disk has other than that of a new one. */
  constructor(
    t: Pick<ExecutionContext, 'teardown'>,
    count: number,
    {
      ids = Array.from({ length: count }, (_, i) => i + 1),
      restoredOf,
      ...options
    }: Partial<DriverOptions> & {
      readonly ids?: readonly number[];
      readonly restoredOf?: (raftId: number) => Partial<HardState>;
    } = {},
  ) {
    for (const raftId of ids) {
      const storage = new MemoryStorage();
      const failures: FarkvError[] = [];
      const driver = new MetadataDriver({
        storage,
        raftId,
        restored: withHardState(bootstrapState(ids), restoredOf?.(raftId)),
        incarnation: raftId,
        random: () => random.next() / 2 ** 32,
        tickMs: 5,
        electionMs: 50,
        log: quiet,
        send: (message, leavesNow) => {
          if (leavesNow) this.early.push({ message, onDisk: storage.lastIndex });
          this.#send(message);
        },
        fatal: (error) => {
          failures.push(error);
          this.#wake();
        },
        ...options,
      });
      const proposer = new Proposer({
        proposer: raftId.toString(16).padStart(16, '0'),
        retryMs: 40,
        formatVersion: () => driver.state.formatVersion,
        submit: (bytes) => {
          const leader = this.cut.has(raftId) ? undefined : this.#member(driver.leader);
          const refusal =
            leader === undefined || this.cut.has(leader.raftId) ? 'not-leader' : leader.driver.propose(bytes);
          return refusal === undefined ? Promise.resolve() : Promise.reject(new FarkvError('ERR_NO_LEADER', refusal));
        },
      });
      driver.onApplied((applied) => proposer.applied(applied));
      driver.onApplied(() => this.#wake());
      driver.onLeader(() => this.#wake());
      driver.onState(() => this.#wake());
      this.members.push({ raftId, storage, driver, proposer, failures });
    }
    for (const m of this.members) m.driver.start();
    t.teardown(() => {
      for (const m of this.members) {
        m.proposer.close();
        m.driver.stop();
      }
    });
  }

  #send(message: RaftMessage): void {
    this.sent.push(message);
    if (this.cut.has(message.from) || this.cut.has(message.to)) return;
    setImmediate(() => this.#member(message.to)?.driver.receive(message.from, message));
  }

  #member(raftId: number): Member | undefined {
    return this.members.find((m) => m.raftId === raftId);
  }

  #wake(): void {
    for (const wake of this.#changed.splice(0)) wake();
  }

  /** What left at once, and the last entry that its sender's disk had then been given. */
  readonly early: { readonly message: RaftMessage; readonly onDisk: number }[] = [];

  async until(condition: () => boolean): Promise<void> {
    while (!condition()) await new Promise<void>((resolve) => this.#changed.push(resolve));
  }

  get leader(): Member | undefined {
    return this.members.find((m) => m.driver.leads && !this.cut.has(m.raftId));
  }

  async elected(): Promise<Member> {
    await this.until(() => this.leader !== undefined);
    return this.leader!;
  }

  one(index = 0): Member {
    return this.members[index]!;
  }
}
