/**
 * READs are one-sided: while a client makes 100,000 GETs the server process works no more than while nobody asks for
 * anything.
 *
 * GETs and idling take turns, and what is compared is the middle one of each: other work of the host is heavier in one
 * interval than in the next, and a collection of V8's garbage, which comes every minute or so and costs four threads
 * more than all else together, falls into one of them by chance. Work for each GET, or for each of a few hundred, is in
 * every turn. The client has processors of its own: a soft device works in its user's kernel, at the processor that
 * sends, and interrupts whoever runs there.
 */
import assert from 'node:assert/strict';
import { availableParallelism } from 'node:os';
import { counters, onProcessors, spent, type Spent, type ThreadSpent } from './device.js';
import type { Part } from './parts.js';

const GETS = 100_000;
const TURNS = 11;
const TURN_GETS = Math.ceil(GETS / TURNS);
const KEYS = 64;
/** What a start leaves to do: garbage, compiled code, connections that come up. */
const SETTLE_MS = 3000;

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
/** What was spent between two looks, by thread; threads that did nothing are left out. */
function between(a: Spent, b: Spent): Spent {
  const found = new Map<string, ThreadSpent>();
  for (const [thread, now] of b) {
    const was = a.get(thread) ?? NOTHING;
    const d = {
      cpuMs: now.cpuMs - was.cpuMs,
      waits: now.waits - was.waits,
      preemptions: now.preemptions - was.preemptions,
    };
    if (d.cpuMs > 0 || d.waits > 0) found.set(thread, d);
  }
  return found;
}
const NOTHING: ThreadSpent = { cpuMs: 0, waits: 0, preemptions: 0 };
const add = (a: ThreadSpent, b: ThreadSpent): ThreadSpent => ({
  cpuMs: a.cpuMs + b.cpuMs,
  waits: a.waits + b.waits,
  preemptions: a.preemptions + b.preemptions,
});
const all = (s: Spent): ThreadSpent => [...s.values()].reduce(add, NOTHING);
const text = (s: ThreadSpent): string =>
  `${s.cpuMs.toFixed(1)} ms of a processor, ${s.waits} sleeps, ${s.preemptions} preemptions`;
const middle = (list: readonly number[]): number => [...list].sort((a, b) => a - b)[list.length >> 1] ?? NaN;

/** Of all turns: what the threads of the data plane spent in all, and the process in the middle turn. */
class Account {
  readonly #turns: Spent[] = [];

  add(turn: Spent): void {
    this.#turns.push(turn);
  }

  get dataPlane(): ThreadSpent {
    return this.#turns
      .flatMap((turn) => [...turn].filter(([thread]) => thread.includes('farkv-data')).map(([, spent]) => spent))
      .reduce(add, NOTHING);
  }

  get middle(): ThreadSpent {
    const turns = this.#turns.map(all);
    return {
      cpuMs: middle(turns.map((t) => t.cpuMs)),
      waits: middle(turns.map((t) => t.waits)),
      preemptions: middle(turns.map((t) => t.preemptions)),
    };
  }

  print(what: string): void {
    console.log(
      `   ${what}: ${text(this.middle)} in the middle turn; ${text(this.#turns.map(all).reduce(add, NOTHING))} in all; data plane ${text(this.dataPlane)}`,
    );
  }

  /** Each turn by thread, for when the whole does not hold. */
  details(what: string): string {
    return this.#turns
      .map((turn, i) => `${what} ${i}: ${[...turn].map(([thread, spent]) => `${thread}: ${text(spent)}`).join('; ')}`)
      .join('\n');
  }
}

export const oneSided: Part = [
  `${GETS} GETs cost the server no more than idling does, and the device counts the READs that the client posted`,
  async ({ cluster: start, client: connectTo, device }) => {
    // One long lease, so that its renewal is no part of either interval.
    const cluster = await start({ servers: 1, shards: 1, args: ['--lease-ms', '60000'] });
    const client = await connectTo(cluster);
    const keys = Array.from({ length: KEYS }, (_, i) => `key-${i}`);
    const value = Buffer.alloc(100, 7);
    for (const key of keys) await client.put(key, value);
    const into = Buffer.alloc(value.length);
    for (const key of keys) client.getIntoSync(key, into); // locations are known from here on

    const { pid } = cluster.server(0);
    const processors = availableParallelism();
    if (processors > 1) {
      onProcessors(pid, '0');
      onProcessors(process.pid, `1-${processors - 1}`);
    }
    await sleep(SETTLE_MS);
    const [deviceBefore, before] = [counters(device), client.stats()];
    const [during, idle] = [new Account(), new Account()];
    let ms = 0;
    for (let turn = 0; turn < TURNS; turn++) {
      const [busyFrom, begun] = [spent(pid), Date.now()];
      for (let i = 0; i < TURN_GETS; i++) {
        into.fill(0);
        assert.equal(client.getIntoSync(keys[i % KEYS] ?? '', into), value.length);
        assert.equal(into[0], 7);
      }
      const took = Date.now() - begun;
      const idleFrom = spent(pid);
      during.add(between(busyFrom, idleFrom));
      await sleep(took);
      idle.add(between(idleFrom, spent(pid)));
      ms += took;
    }
    if (processors > 1) onProcessors(process.pid, `0-${processors - 1}`);
    const [deviceAfter, after] = [counters(device), client.stats()];
    const reads = after.reads - before.reads;
    console.log(`   ${TURNS * TURN_GETS} GETs in ${ms} ms, ${reads} READs`);
    during.print('server, GETs');
    idle.print('server, idle');
    assert.ok(reads >= GETS, 'each GET is at least one READ');
    assert.equal(after.twoSidedGets, before.twoSidedGets);
    const details = (): string => `\n${during.details('GETs')}\n${idle.details('idle')}`;
    const [d, i] = [during.middle, idle.middle];
    // A request for each GET would be thousands of sleeps a turn; what Raft and timers do differs a little from one
    // turn to the next.
    assert.ok(d.waits <= i.waits * 1.3 + 5, `context switches${details()}`);
    assert.ok(d.cpuMs <= i.cpuMs * 1.3 + 10, `processor time${details()}`);
    // Its threads have no garbage, so they are judged by all that they do.
    assert.ok(
      during.dataPlane.waits <= idle.dataPlane.waits + 2 * TURNS,
      `context switches of the data plane${details()}`,
    );

    // Soft-RoCE counts packets: a request and an answer for each READ of less than an MTU. SENDs (leases) and
    // retransmissions are few.
    const sentBefore = deviceBefore.get('sent_pkts');
    const sent = (deviceAfter.get('sent_pkts') ?? 0) - (sentBefore ?? 0);
    const sends = (deviceAfter.get('rdma_sends') ?? 0) - (deviceBefore.get('rdma_sends') ?? 0);
    if (sentBefore === undefined) {
      console.log(`   ${device} has no counter of packets`);
      return;
    }
    console.log(`   ${device} sent ${sent} packets (two a READ: ${2 * reads}), ${sends} of them SENDs`);
    assert.ok(sends < 100, 'hardly any SEND');
    assert.ok(sent >= 2 * reads && sent <= 2.02 * reads + 1000, 'packets of READs');
  },
];
