/** READs are one-sided: while a client makes 100,000 GETs the server process works no more than while nobody asks for anything. */
import assert from 'node:assert/strict';
import { counters, spent, type Spent } from './device.js';
import type { Part } from './parts.js';

const GETS = 100_000;
/** GETs and idling take turns, because other work of the host may be heavier in one interval than in the next. */
const TURNS = 5;
const KEYS = 64;
/** What a start leaves to do: garbage, compiled code, connections that come up. */
const SETTLE_MS = 3000;

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
const since = (a: Spent, b: Spent): Spent => ({ cpuSeconds: b.cpuSeconds - a.cpuSeconds, waits: b.waits - a.waits, preemptions: b.preemptions - a.preemptions });
const sum = (a: Spent, b: Spent): Spent => ({ cpuSeconds: a.cpuSeconds + b.cpuSeconds, waits: a.waits + b.waits, preemptions: a.preemptions + b.preemptions });
const NOTHING: Spent = { cpuSeconds: 0, waits: 0, preemptions: 0 };
const text = (s: Spent): string => `${s.cpuSeconds.toFixed(2)} s CPU, ${s.waits} sleeps, ${s.preemptions} preemptions`;

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
    for (const key of keys) client.getIntoSync(key, into);   // locations are known from here on

    const { pid } = cluster.server(0);
    await sleep(SETTLE_MS);
    const [deviceBefore, before] = [counters(device), client.stats()];
    let [during, idle, ms] = [NOTHING, NOTHING, 0];
    for (let turn = 0; turn < TURNS; turn++) {
      const [busyFrom, begun] = [spent(pid), Date.now()];
      for (let i = 0; i < GETS / TURNS; i++) {
        into.fill(0);
        assert.equal(client.getIntoSync(keys[i % KEYS] ?? '', into), value.length);
        assert.equal(into[0], 7);
      }
      const took = Date.now() - begun;
      const idleFrom = spent(pid);
      during = sum(during, since(busyFrom, idleFrom));
      await sleep(took);
      idle = sum(idle, since(idleFrom, spent(pid)));
      ms += took;
    }
    const [deviceAfter, after] = [counters(device), client.stats()];
    const reads = after.reads - before.reads;
    console.log(`   ${GETS} GETs in ${ms} ms, ${reads} READs; server: ${text(during)}; idle as long: ${text(idle)}`);
    assert.ok(reads >= GETS, 'each GET is at least one READ');
    assert.equal(after.twoSidedGets, before.twoSidedGets);
    // A request for each GET would be 100,000 switches; what Raft, timers and garbage collection do differs a little from one interval to the next.
    assert.ok(during.waits <= idle.waits * 1.3 + 50, 'context switches');
    assert.ok(during.cpuSeconds <= idle.cpuSeconds * 1.3 + 0.1, 'CPU');

    // Soft-RoCE counts packets: a request and an answer for each READ of less than an MTU. SENDs (leases) and retransmissions are few.
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
