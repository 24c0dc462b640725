/** Dead owners and deaf leaders, with simulated time. */
import test from 'ava';
import { LEASE, MetadataLog } from '../../test/support/metadata-log.js';
import { nextLookMs, takeFromDead } from './leader-policy.js';
import { GrantedLeases, heldMs } from './owner-leases.js';
import { RECONNECT_MS, RENEWALS, Silences } from './silence.js';

const TERMS = { leaseMs: 800, driftPpm: 1000 };
const HELD = heldMs(TERMS);
const RENEW_MS = TERMS.leaseMs / RENEWALS;

/** A leader s1 and its owners. Time passes in steps of a millisecond; whoever runs does what its timers say. */
class Scene {
  readonly log = MetadataLog.cluster(6, ['s1', 's2', 's3']);
  readonly leases = new GrantedLeases(TERMS, 0);
  readonly #askedMs = new Map<string, number>();
  /** Asks that lie in the leader's sockets. */
  #unread: string[] = [];
  #wakeMs: number | undefined;
  looks = 0;
  takenMs: number | undefined;
  taken: string | undefined;
  nowMs = 0;

  constructor(
    private readonly runs: (server: string, nowMs: number) => boolean,
    private readonly quorum: (nowMs: number) => boolean = () => true,
  ) {}

  until(endMs: number): this {
    while (this.nowMs < endMs && this.taken === undefined) {
      this.nowMs++;
      for (const id of ['s1', 's2', 's3']) this.#owner(id);
      if (this.runs('s1', this.nowMs)) this.#leader();
    }
    return this;
  }

  #owner(id: string): void {
    if (!this.runs(id, this.nowMs) || this.nowMs - (this.#askedMs.get(id) ?? -Infinity) < RENEW_MS) return;
    this.#askedMs.set(id, this.nowMs);
    this.#unread.push(id);
  }

  /** Timers, then sockets, then what a quorum has answered: as the event loop does it. */
  #leader(): void {
    const { leases, nowMs } = this;
    const listens = this.#wakeMs !== undefined && nowMs >= this.#wakeMs;
    if (listens) this.looks++;
    this.#take();
    for (const id of this.#unread) leases.asked(id, nowMs);
    if (!this.quorum(nowMs) || (!listens && this.#unread.length === 0)) return;
    leases.confirmed(nowMs);
    for (const id of this.#unread) {
      leases.grant(id, nowMs);
      this.#take();
    }
    this.#unread = [];
    this.#take();
  }

  #take(): void {
    this.#wakeMs = nextLookMs(this.log.state, this.leases, this.nowMs);
    const taken = takeFromDead(this.log.state, this.leases, this.nowMs);
    if (taken === undefined || this.taken !== undefined) return;
    this.taken = taken.id;
    this.takenMs = this.nowMs;
  }
}

const within = (nowMs: number, from: number, to: number): boolean => nowMs >= from && nowMs < to;

test('a dead owner is found one lease after its last question, and the leader looks for it a few times only', (t) => {
  const scene = new Scene((id, nowMs) => id !== 's2' || nowMs < 2000).until(20_000);
  t.is(scene.taken, 's2');
  t.true(scene.takenMs! >= 1801 + HELD && scene.takenMs! < 2000 + HELD + 5, String(scene.takenMs));
  t.true(scene.looks < 20, String(scene.looks));
});

for (const stallMs of [20, 100, 200, 400, 700]) {
  test(`a leader that stalls for ${stallMs} ms in every second gives a dead owner's shards away, the sooner the shorter it stalls`, (t) => {
    for (let killedMs = 2000; killedMs < 3000; killedMs += 61) {
      const scene = new Scene((id, nowMs) =>
        id === 's1' ? nowMs % 1000 >= stallMs : id !== 's2' || nowMs < killedMs,
      ).until(40_000);
      t.is(scene.taken, 's2');
      const tookMs = scene.takenMs! - killedMs;
      // Of each second this is heard at the least; a stall may end in a deaf time with the wait before it, and owners
      // have their grace then.
      const heardMs = 1000 - stallMs - RENEW_MS;
      const graceMs = stallMs + RENEW_MS < TERMS.leaseMs ? 0 : 1000;
      t.true(tookMs <= 1000 * Math.ceil((HELD + graceMs) / heardMs) + stallMs, `${tookMs} ms after ${killedMs}`);
      if (stallMs <= 200) t.true(tookMs < 1500, `${tookMs} ms after ${killedMs}`);
    }
  });

  test(`a leader that stalls for ${stallMs} ms in every second takes nothing from the living`, (t) => {
    t.is(new Scene((id, nowMs) => id !== 's1' || nowMs % 1000 >= stallMs).until(20_000).taken, undefined);
  });
}

for (const [what, together] of [
  ['one more', ['s1', 's2']],
  ['all', ['s1', 's2', 's3']],
] as const) {
  test(`nothing is taken from anybody when the leader and ${what} stand still, for however long`, (t) => {
    for (const pauseMs of [300, 600, 700, 780, 1000, 5000]) {
      for (let from = 2000; from < 2000 + RENEW_MS; from += 47) {
        // The others go on a little later than the leader.
        const lateMs = (id: string): number => (id === 's1' ? 0 : 150);
        const scene = new Scene(
          (id, nowMs) => !together.some((one) => one === id) || !within(nowMs, from, from + pauseMs + lateMs(id)),
        ).until(from + pauseMs + 4000);
        t.is(scene.taken, undefined, `${pauseMs} ms from ${from}: ${scene.taken ?? ''} at ${scene.takenMs ?? 0}`);
      }
    }
  });
}

test('after a deaf time an owner has as long again to come back, two seconds at the most, and a lease; a dead one has no more', (t) => {
  for (const [pauseMs, moreMs] of [
    [900, 900],
    [2500, RECONNECT_MS],
    [3_600_000, RECONNECT_MS],
  ] as const) {
    const until = 2000 + pauseMs;
    const scene = new Scene((id, nowMs) => (id === 's2' ? nowMs < 2000 : !within(nowMs, 2000, until))).until(
      until + 30_000,
    );
    t.is(scene.taken, 's2');
    const lastMs = until + moreMs + HELD;
    t.true(
      scene.takenMs! >= lastMs && scene.takenMs! < lastMs + RENEW_MS,
      `${scene.takenMs! - until} ms after ${pauseMs} ms`,
    );
  }
});

test('deaf times that follow each other give a dead owner one grace only', (t) => {
  const scene = new Scene((id, nowMs) =>
    id === 's2' ? nowMs < 2000 : nowMs < 2000 || (nowMs - 2000) % 1500 >= 1000,
  ).until(60_000);
  t.is(scene.taken, 's2');
  // In each second and a half, 300 ms are heard at the least; a second of grace and a lease must be.
  t.true(scene.takenMs! < 2000 + 1500 * Math.ceil((1000 + RENEW_MS + HELD) / 300), String(scene.takenMs));
});

test('a time without a quorum is none in which owners were silent, also for a leader that runs', (t) => {
  for (const goneMs of [500, 900, 2000]) {
    const gone = (nowMs: number): boolean => within(nowMs, 2000, 2000 + goneMs);
    // The owners are stopped with the quorum, and the leader's own server is not.
    const scene = new Scene(
      (id, nowMs) => id === 's1' || !gone(nowMs),
      (nowMs) => !gone(nowMs),
    ).until(30_000);
    t.is(scene.taken, undefined, String(scene.takenMs));
  }
});

test('a new leader that stands still gives the same grace as one that knew its owners', (t) => {
  const scene = new Scene((id, nowMs) => (id === 's1' ? nowMs < 100 || nowMs >= 3000 : nowMs >= 3900)).until(30_000);
  t.is(scene.taken, undefined, String(scene.takenMs));
});

test('a question counts when it is read, though a quorum has not answered it', (t) => {
  const leases = new GrantedLeases(LEASE, 0);
  leases.grant('s2', 0);
  for (let at = 100; at <= 900; at += 100) leases.confirmed(at);
  leases.asked('s2', 1000);
  leases.confirmed(1100);
  leases.grant('s1', 1100);
  t.true(leases.over('s2', 1100));
  t.false(leases.dead('s2', 1100));
});

test('an owner that says that it ends is dead at once', (t) => {
  const leases = new GrantedLeases(LEASE, 0);
  leases.grant('s2', 100);
  t.false(leases.dead('s2', 200));
  leases.end('s2', 200);
  t.true(leases.dead('s2', 200));
});

test('the leader looks again later than now, and at least every half CAP while an owner is silent', (t) => {
  const silences = new Silences(TERMS, HELD, 0);
  silences.asked('s2', 0);
  t.is(silences.lookAt('s2', 0), HELD / 2);
  silences.confirmed(RENEW_MS);
  silences.confirmed(2 * RENEW_MS);
  silences.confirmed(HELD / 2);
  t.is(silences.lookAt('s2', HELD / 2), HELD / 2 + RENEW_MS / 2);
  t.is(silences.lookAt('s2', HELD / 2 + 10_000), HELD / 2 + 10_001);
});
