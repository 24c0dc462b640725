/**
 * The loop of a benchmark thread: `outstanding` lanes, each with one operation in flight, until the thread's share is
 * done or it is told to stop. With `target` each operation has its time on a schedule that does not wait for slow ones
 * (intended time).
 *
 * A lane awaits only where the database did not answer at once. A thread whose database always answers at once still
 * goes back to its event loop now and then: the client behind it may have a socket to serve.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { Signals, type ThreadTask } from './protocol.js';
import { nowNs, type Workload } from './workload.js';
import { isPromise } from './databases/database.js';

const YIELD_EVERY_NS = 20e6;
/** Timers are coarse by a millisecond; what is left of a wait goes by in turns of the event loop. */
const TIMER_SLACK_NS = 1.5e6;

/** Lighter than that of timers/promises: waits on a schedule do it a hundred thousand times a second. */
function immediate(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

export class Lanes {
  readonly #task: ThreadTask;
  readonly #workload: Workload;
  readonly #signals: Int32Array;
  readonly #onInterval: (interval: number) => void;
  readonly #tickNs: number;
  #begun = 0;
  #done = 0;
  #startNs = 0;
  #lastYieldNs = 0;
  #interval: number;
  #failed = false;

  constructor(task: ThreadTask, workload: Workload, onInterval: (interval: number) => void) {
    const { target, threads } = task.parameters;
    this.#task = task;
    this.#workload = workload;
    this.#signals = new Int32Array(task.signals);
    this.#interval = this.#signals[Signals.interval] ?? 0;
    this.#onInterval = onInterval;
    this.#tickNs = target > 0 ? (1e9 * threads) / target : 0;
  }

  get done(): number {
    return this.#done;
  }

  async run(random: () => number): Promise<void> {
    // Threads of a slow schedule do not all begin at once.
    if (this.#tickNs >= 1e6) await this.#until(nowNs() + random() * this.#tickNs);
    this.#startNs = this.#lastYieldNs = nowNs();
    await Promise.all(Array.from({ length: this.#task.parameters.outstanding }, (_, lane) => this.#lane(lane)));
  }

  async #lane(lane: number): Promise<void> {
    const load = this.#task.phase === 'load';
    const { operations } = this.#task;
    const doneWord = Signals.done + this.#task.thread * Signals.stride;
    while ((operations === 0 || this.#begun < operations) && !this.#stopped()) {
      const turn = this.#begun++;
      let intended = 0;
      if (this.#tickNs > 0 && turn > 0) {
        intended = this.#startNs + turn * this.#tickNs;
        if (nowNs() < intended) await this.#until(intended);
        if (this.#stopped()) break;
      }
      let going: unknown = load ? this.#workload.load(lane, intended) : this.#workload.transaction(lane, intended);
      if (isPromise(going)) going = await going;
      if (load && going === false) {
        this.#failed = true;
        break;
      }
      this.#signals[doneWord] = ++this.#done;
      const asked = this.#signals[Signals.interval] ?? 0;
      if (asked !== this.#interval) {
        this.#interval = asked;
        this.#onInterval(asked);
      }
      if ((this.#done & 63) === 0 && nowNs() - this.#lastYieldNs > YIELD_EVERY_NS) {
        await immediate();
        this.#lastYieldNs = nowNs();
      }
    }
  }

  #stopped(): boolean {
    return this.#failed || this.#signals[Signals.stop] === 1;
  }

  async #until(deadlineNs: number): Promise<void> {
    for (;;) {
      const left = deadlineNs - nowNs();
      if (left <= 0 || this.#stopped()) return;
      // A stop is noticed within half a second, however slow the schedule.
      if (left > 2 * TIMER_SLACK_NS) await delay(Math.min(500, (left - TIMER_SLACK_NS) / 1e6));
      else await immediate();
    }
  }
}
