/** Faults of many servers at once come by themselves, so that nothing else explains what is lost with them. */
import test from 'ava';
import { seeded } from '../support/random.js';
import { drawSchedule, kindsAt, type Fault, type Level } from './schedule.js';

const OPTIONS = { seconds: 300, servers: 5, shards: 10, clients: 6, ownerLeaseMs: 1500, network: true } as const;
const span = ({ atMs, fault }: { readonly atMs: number; readonly fault: Fault }): readonly [number, number] => [
  atMs,
  atMs + ('forMs' in fault ? fault.forMs : 0),
];
const MANY: readonly Fault['kind'][] = ['pause-majority', 'suspend'];
const OF_SERVERS: readonly Fault['kind'][] = ['kill', 'restart', 'pause', 'cut', 'mute', 'deafen', ...MANY];

test('a pause of many servers outlasts the leases, and no other fault of a server is near it', (t) => {
  const random = seeded(t, import.meta.filename);
  let pauses = 0;
  for (let round = 0; round < 20; round++) {
    const plan = drawSchedule(random, OPTIONS);
    for (const one of plan.filter(({ fault }) => MANY.includes(fault.kind))) {
      pauses++;
      const [from, to] = span(one);
      t.true(to - from >= 2000);
      for (const other of plan.filter((p) => p !== one && OF_SERVERS.includes(p.fault.kind))) {
        const [otherFrom, otherTo] = span(other);
        t.true(
          otherTo + 3000 <= from || otherFrom >= to + 3000,
          `${other.fault.kind} at ${otherFrom} beside ${one.fault.kind} from ${from} to ${to}`,
        );
      }
    }
  }
  t.true(pauses > 20);
});

test('all kinds of faults come, or only those that are asked for', (t) => {
  const random = seeded(t, import.meta.filename);
  const kindsOf = (only?: readonly Fault['kind'][], level: Level = 'cache'): string[] =>
    [
      ...new Set(
        Array.from({ length: 10 }, () => drawSchedule(random, { ...OPTIONS, only, level }))
          .flat()
          .map(({ fault }) => fault.kind),
      ),
    ].sort();
  t.deepEqual(kindsOf(), [...kindsAt('cache')].sort());
  t.deepEqual(kindsOf(undefined, 'replicated'), [...kindsAt('replicated')].sort());
  t.deepEqual(kindsOf(undefined, 'durable'), [...kindsAt('durable')].sort());
  t.deepEqual(kindsOf(['suspend', 'move']), ['move', 'suspend']);
});
