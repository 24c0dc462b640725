/**
 * The client of old-map.long.test.ts: `node old-map-client.js SERVERS TRANSPORT KEY`. Puts "old", reads it, prints
 * "ready", and then waits for its standard input without turning its event loop: no map reaches it. For each line there
 * it reads the key several times and prints what it got. Over shm these reads do not turn the event loop either; over
 * tcp the first is sent by the old map. The last of a line's reads does, and waits longer.
 */
import { readSync } from 'node:fs';
import { connect, FarkvError } from '../../client/index.js';

export interface OldMapReads {
  /** null: not in time; "absent": there is none. */
  readonly values: readonly (string | null)[];
  /** When the first read began, this process had no other map than the first one. */
  readonly oldMap: boolean;
}

const READS = 5;
const [, , servers = '', transport, key = ''] = process.argv;
let maps = 0;
const kv = await connect({
  servers,
  transport: transport === 'shm' ? 'shm' : 'tcp',
  strict: true,
  unavailableAfterMs: Infinity,
  onEvent: ({ type }) => void (maps += type === 'map' ? 1 : 0),
});
const patient = { timeoutMs: 120_000 };
const impatient = { timeoutMs: 200 };
await kv.put(key, 'old', patient);
if (String(await kv.get(key, patient)) !== 'old') throw new Error('the value is not there');
const known = maps;
process.stdout.write('ready\n');
const line = Buffer.alloc(64);
while (readSync(0, line) > 0) {
  const oldMap = maps === known;
  const values: (string | null)[] = [];
  for (let i = 0; i <= READS; i++) {
    try {
      const value =
        i === READS
          ? await kv.get(key, { timeoutMs: 5000 })
          : transport === 'shm'
            ? kv.getSync(key, impatient)
            : await kv.get(key, impatient);
      values.push(value === undefined ? 'absent' : String(value));
    } catch (error) {
      if (!(error instanceof FarkvError)) throw error;
      values.push(null);
    }
  }
  process.stdout.write(`${JSON.stringify({ values, oldMap } satisfies OldMapReads)}\n`);
}
await kv.close();
