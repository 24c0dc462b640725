/** GETs of a cluster that does more for its PUTs, against one that does not: its GETs are to cost the same. */
import { beside, unchanged } from './beside.js';
import type { OpenFarkv } from './copied-stores.js';
import type { Lab } from './lab.js';
import { drawing, medianNs, rate } from './loops.js';
import { totalSeconds } from './processor-time.js';
import { atMost, type Part, type Side } from './row.js';
import { keysOf } from './stores.js';

const GETS = 200_000;
const OUTSTANDING = 100;
const SEQUENTIAL = 20_000;

export interface NamedFarkv extends OpenFarkv {
  /** Of its side, such as `one copy`. */
  readonly name: string;
}

type Sides = (run: (of: OpenFarkv, draw: (count: number) => string[]) => Promise<number>) => [Side, Side];

/** Both sides draw the same keys in the same order. */
function sidesOf(lab: Lab, farkvs: readonly [NamedFarkv, NamedFarkv]): Sides {
  const keys = keysOf(lab.keys);
  return (run) => {
    const side = (of: NamedFarkv): Side => {
      const draw = drawing(keys);
      return { name: of.name, run: () => run(of, draw) };
    };
    return [side(farkvs[0]), side(farkvs[1])];
  };
}

export function sameGetTimes(
  lab: Lab,
  transport: 'tcp' | 'shm',
  farkvs: readonly [NamedFarkv, NamedFarkv],
): Promise<Part> {
  return unchanged(
    lab,
    `${transport} get, ${farkvs[0].name}, one at a time, p50`,
    'us',
    sidesOf(
      lab,
      farkvs,
    )(async ({ client }, draw) => (await medianNs(draw(SEQUENTIAL), (key) => client.get(key))) / 1000),
    (us) => `${us.toFixed(2)} us`,
  );
}

/** Over tcp: READs, the time of one GET, and what GETs cost the servers. */
export async function sameGets(lab: Lab, farkvs: readonly [NamedFarkv, NamedFarkv]): Promise<Part[]> {
  const sides = sidesOf(lab, farkvs);
  const [{ name }, other] = farkvs;
  return [
    // Both caches of locations have seen the same keys in the same order.
    await beside(
      lab,
      `READs a GET over tcp, ${name}`,
      atMost(1.01, `times that of ${other.name}`),
      sides(async ({ client }, draw) => {
        const before = client.stats();
        await rate(draw(GETS), OUTSTANDING, (key) => client.get(key));
        const after = client.stats();
        const reads = after.reads + after.followedReads - before.reads - before.followedReads;
        return reads / (after.gets - before.gets);
      }),
      (reads) => reads.toFixed(3),
    ),
    await sameGetTimes(lab, 'tcp', farkvs),
    await unchanged(
      lab,
      `server CPU a GET over tcp, ${name}`,
      'ns',
      sides(async ({ client, cluster: { pids } }, draw) => {
        const some = draw(GETS);
        const before = totalSeconds(pids);
        await rate(some, OUTSTANDING, (key) => client.get(key));
        return ((totalSeconds(pids) - before) * 1e9) / GETS;
      }),
      (ns) => `${ns.toFixed(0)} ns`,
    ),
  ];
}
