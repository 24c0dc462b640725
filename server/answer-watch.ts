/**
 * Whether all threads of the data plane answer. A thread that hangs renews no lease and loses none, since that is done
 * elsewhere: its clients get nothing, and nobody would notice. The question makes the figures of all shards, so it is
 * put seldom, and only while probes ask.
 */
const EACH_MS = 5000;

interface Asked {
  /** When the last question was put, and whether it is answered. */
  askedMs: number;
  answered: boolean;
}
const watched = new WeakMap<object, Asked>();

/** Milliseconds since the question that is not answered; 0: all are, as far as is known. */
export function unansweredMs(dataPlane: { stats(): Promise<unknown> }, nowMs = performance.now()): number {
  const asked = watched.get(dataPlane);
  if (asked?.answered === false) return nowMs - asked.askedMs;
  if (asked === undefined || nowMs - asked.askedMs >= EACH_MS) {
    const now: Asked = { askedMs: nowMs, answered: false };
    watched.set(dataPlane, now);
    // One that is closed refuses, which is an answer.
    void dataPlane.stats().then(
      () => (now.answered = true),
      () => (now.answered = true),
    );
  }
  return 0;
}
