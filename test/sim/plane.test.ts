/** The simulated data plane does what it is asked for in order, as the product's does, though each may come late. */
import test from 'ava';
import { EMPTY } from '../../core/metadata/reduce.js';
import type { Request } from '../../core/shards/index.js';
import { newBackup } from '../../core/shards/local-shard.js';
import { Random } from '../support/random.js';
import { CopyTables } from './copy-tables.js';
import { Plane } from './plane.js';

const SHARD = 0;
const COPY = '1'.padStart(16, '0');
const LEASE_MS = 40;

/** An owner's data plane, and a clock that moves by hand. */
class Rig {
  /** How often clients were allowed to rely on the shard. */
  claims = 0;
  readonly #life = newBackup(SHARD, 0);
  readonly #plane: Plane;
  #nowMs = 0;

  constructor(seed: number) {
    const random = new Random(seed);
    const nowMs = (): number => this.#nowMs;
    const nothing = (): void => undefined;
    const s = { shard: SHARD, owner: 'm1', worker: 0, epoch: 1, layoutEpoch: 1, buckets: 1, regions: [] };
    this.#plane = new Plane({
      memberId: 'm1',
      memberIncarnation: COPY,
      leaseMs: LEASE_MS,
      random,
      nowMs,
      random64: () => COPY,
      metadata: () => ({ ...EMPTY, shards: [{ ...s, incarnation: COPY }] }),
      planeOf: () => undefined,
      propose: nothing,
      claim: () => this.claims++,
      copies: new CopyTables({
        random,
        nowMs,
        record: () => 1,
        reach: () => undefined,
        notice: nothing,
        ownerSuspected: nothing,
        linked: () => true,
        counted: nothing,
      }),
    });
    this.ask({
      do: 'open',
      shard: SHARD,
      worker: 0,
      epoch: 1,
      incarnation: COPY,
      memoryBytes: 1,
      durable: false,
      buckets: 1,
    });
    this.ask({
      do: 'configure',
      shard: SHARD,
      epoch: 1,
      copies: { config: 1, minInSync: 1, alone: true, handed: false, inSync: [], eligible: [], joining: [] },
    });
  }

  ask(...actions: Request[]): void {
    this.#plane.input((shards) => {
      for (const action of actions) shards.ask(this.#life, action);
    });
  }

  pass(ms: number): void {
    for (const endMs = this.#nowMs + ms; this.#nowMs < endMs;) {
      this.#nowMs++;
      this.#plane.tick();
      this.#plane.grant(Infinity);
    }
  }
}

const CALLS = [
  { do: 'serve', shard: SHARD },
  { do: 'hand over', shard: SHARD, copy: COPY },
] as const;
const ENDS = [
  { do: 'step down', shard: SHARD, copy: COPY },
  { do: 'pause', shard: SHARD },
  { do: 'close', shard: SHARD },
] as const;

for (const end of ENDS)
  test(`after ${end.do} no earlier call lets clients rely on the shard`, (t) => {
    for (const call of CALLS)
      for (let seed = 1; seed <= 20; seed++) {
        const rig = new Rig(seed);
        rig.ask({ do: 'serve', shard: SHARD });
        rig.pass(LEASE_MS);
        t.true(rig.claims > 0, 'it is served');
        rig.ask(call, end);
        rig.claims = 0;
        rig.pass(3 * LEASE_MS);
        t.is(rig.claims, 0, `${call.do}, seed ${seed}`);
      }
  });
