/**
 * What the servers spend while clients GET: CPU time of all their threads from /proc, over intervals of at least
 * 1,000,000 GETs.
 */
import type { Lab } from './lab.js';
import { drawing, meanNs, rate } from './loops.js';
import { totalSeconds } from './processor-time.js';
import { Readers } from './readers.js';
import { atMost, interleave, part, type Part } from './row.js';
import { median, ratios } from './statistics.js';
import type { Stores } from './stores.js';

const LEAST_GETS = 1_000_000;
/**
 * Seconds of GETs: what idle servers spend in that time differs from one such interval to the next by less than 1 ns a
 * GET.
 */
const SHM_GETS = 5_000_000;
const SLICE = 100_000;
/** Two renewals of a client's lease. */
const SLICE_MS = 2000;

/** getInto over shm, until there were `gets` and `ms` are over. */
async function readOverShm(
  s: Stores,
  gets: number,
  ms: number,
): Promise<{ gets: number; seconds: number; cpuSeconds: number }> {
  const shm = await s.shm();
  const { pids } = await s.cluster();
  const target = Buffer.alloc(s.value.length + 64);
  const draw = drawing(s.keys);
  const before = totalSeconds(pids);
  const begin = performance.now();
  let done = 0;
  while (done < gets || performance.now() - begin < ms) {
    await meanNs(draw(SLICE), (key) => shm.getInto(key, target));
    done += SLICE;
  }
  return { gets: done, seconds: (performance.now() - begin) / 1000, cpuSeconds: totalSeconds(pids) - before };
}

/** All servers together, as a part of one core, during ten seconds of GETs over shm. */
export async function serverShare(lab: Lab, goal: number): Promise<Part[]> {
  const s = await lab.stores(1000);
  let gets = 0;
  const [shares = []] = await interleave(lab, [
    {
      name: 'farkv',
      run: async () => {
        const run = await readOverShm(s, LEAST_GETS, 10_000);
        gets += run.gets;
        return (100 * run.cpuSeconds) / run.seconds;
      },
    },
  ]);
  return [
    part(
      'server CPU during GETs over shm',
      { kind: 'below', value: goal, unit: '% of one core' },
      shares,
      `${gets.toLocaleString('en')} GETs, all servers`,
    ),
  ];
}

/** A GET over shm costs the servers nothing: what they spend is what they spend in the same time without GETs. */
async function cpuOverShm(lab: Lab): Promise<Part> {
  const s = await lab.stores(1000);
  const { pids } = await s.cluster();
  let seconds = 1;
  const [busy = [], idle = []] = await interleave(lab, [
    {
      name: 'GETs',
      run: async () => {
        const run = await readOverShm(s, SHM_GETS, 0);
        ({ seconds } = run);
        return (run.cpuSeconds * 1e9) / run.gets;
      },
    },
    {
      name: 'none',
      run: async () => {
        const before = totalSeconds(pids);
        await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
        return ((totalSeconds(pids) - before) * 1e9) / SHM_GETS;
      },
    },
  ]);
  const detail = `${median(busy).toFixed(1)} ns during GETs, ${median(idle).toFixed(1)} ns in the same time without any`;
  // Below 1 ns is what 0 means: a lease that is renewed every second is not nothing.
  return part(
    'server CPU a GET over shm, beyond that of idle servers',
    atMost(1, 'ns (goal: 0)'),
    busy.map((x, i) => x - (idle[i] ?? 0)),
    detail,
  );
}

/** 100 outstanding. */
async function cpuOverTcp(lab: Lab, goal: number): Promise<Part> {
  const s = await lab.stores(1000);
  const [tcp, redis, { pids }] = [await s.tcp(), await s.redis(), await s.cluster()];
  const keys = drawing(s.keys)(LEAST_GETS);
  const cost = async (of: readonly number[], get: (key: string) => unknown): Promise<number> => {
    const before = totalSeconds(of);
    await rate(keys, 100, get);
    return ((totalSeconds(of) - before) * 1e9) / LEAST_GETS;
  };
  const [ours = [], theirs = []] = await interleave(lab, [
    { name: 'farkv', run: () => cost(pids, (key) => tcp.get(key)) },
    { name: 'redis', run: () => cost([redis.peer.pid], (key) => redis.client.getBuffer(key)) },
  ]);
  const detail = `farkv ${median(ours).toFixed(0)} ns, Redis ${median(theirs).toFixed(0)} ns`;
  return part('server CPU a GET over tcp against Redis', atMost(goal, "times Redis's"), ratios(ours, theirs), detail);
}

export async function cpuPerGet(lab: Lab, tcpGoal: number): Promise<Part[]> {
  return [await cpuOverShm(lab), await cpuOverTcp(lab, tcpGoal)];
}

/** Processes that GET over shm, 1 to 16: what the servers spend with each number of them, as a part of one core. */
export async function clientProcesses(lab: Lab, goal: number): Promise<Part[]> {
  const s = await lab.stores(1000);
  const { addresses, pids } = await s.cluster();
  const numbers = [1, 2, 4, 8, 16];
  const readers = await Readers.start(Math.max(...numbers), addresses[0] ?? '', s.keys.length, s.value.length);
  try {
    const share = async (processes: number): Promise<number> => {
      const before = totalSeconds(pids);
      const begin = performance.now();
      for (let gets = 0; gets < LEAST_GETS;) {
        lab.signal.throwIfAborted();
        gets += await readers.read(processes, SLICE_MS);
      }
      return (100 * (totalSeconds(pids) - before)) / ((performance.now() - begin) / 1000);
    };
    const shares = await interleave(
      lab,
      numbers.map((n) => ({ name: `${n} processes`, run: () => share(n) })),
    );
    const [one = []] = shares;
    const most = shares.at(-1) ?? [];
    const detail = numbers.map((n, i) => `${n}: ${median(shares[i] ?? []).toFixed(2)} %`).join(', ');
    return [
      part(
        'server CPU with 16 client processes, beyond that with 1',
        atMost(goal, '% of one core (goal: flat)'),
        most.map((x, i) => x - (one[i] ?? 0)),
        detail,
      ),
    ];
  } finally {
    await readers.stop();
  }
}
