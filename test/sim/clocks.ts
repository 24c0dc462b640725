/** The members' clocks: each has its own rate, within the bound, and its own beginning. */
import type { World } from './world.js';

interface Clock {
  readonly rate: number;
  readonly fromMs: number;
}

export class Clocks {
  readonly #clocks = new Map<number, Clock>();

  constructor(
    private readonly world: () => World,
    private readonly driftPpm: number,
  ) {}

  /** What this member's clock shows now. */
  nowMs(member: number): number {
    const { rate, fromMs } = this.#of(member);
    return fromMs + (this.world().now / 1000) * rate;
  }

  /** World time at which this member's clock shows `ms`. */
  worldUs(member: number, ms: number): number {
    const { rate, fromMs } = this.#of(member);
    return ((ms - fromMs) / rate) * 1000;
  }

  #of(member: number): Clock {
    let clock = this.#clocks.get(member);
    if (clock === undefined) {
      const { random } = this.world();
      const drift = (random.below(2001) - 1000) / 1000;
      // Of the extremes there are many: they are what the bound is about.
      const rate = 1 + ((drift < -0.3 ? -1 : drift > 0.3 ? 1 : drift) * this.driftPpm) / 2_000_000;
      clock = { rate, fromMs: random.below(1_000_000) };
      this.#clocks.set(member, clock);
    }
    return clock;
  }
}
