/**
 * `npm run bench:failover` and `npm run bench:join`: what clients notice when a server with copies fails, and how long
 * copies take to be made. Three servers as processes; everything is stopped again, also on Ctrl-C.
 *
 * Exit codes: 0 measured, 2 wrong usage, or a server or a call failed.
 */
import { cpus, loadavg } from 'node:os';
import yargs from 'yargs';
import { hideBin } from 'yargs/helpers';
import { Cluster } from '../../test/support/cluster.js';
import { wrongUsage } from '../../test/support/wrong-usage.js';
import { memoryFor } from '../compare/stores.js';
import { failover, FAULTS } from './failover.js';
import { join } from './join.js';
import { copiesMade } from './status.js';

const SERVERS = 3;
/** The server's own default. */
const OWNER_LEASE_MS = 800;

const note = (text: string): void => void process.stderr.write(`${new Date().toISOString().slice(11, 19)} ${text}\n`);
const positive = (value: number): number => {
  if (!Number.isInteger(value) || value < 1) throw new Error('numbers are whole, from 1 on');
  return value;
};

async function over(
  transport: 'tcp' | 'shm',
  memory: string,
  shards: number,
  level: 'cache' | 'replicated',
  use: (cluster: Cluster) => Promise<string>,
): Promise<void> {
  const ends: (() => unknown)[] = [];
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130));
  try {
    process.stdout.write(
      `${cpus().length} x ${cpus()[0]?.model.trim() ?? 'unknown CPU'}, load average ${(loadavg()[0] ?? 0).toFixed(1)} at the start\n`,
    );
    const cluster = await Cluster.start(
      { teardown: (end) => void ends.push(end) },
      {
        servers: SERVERS,
        shards,
        memory,
        level,
        args: [
          ...['--owner-lease-ms', String(OWNER_LEASE_MS)],
          // Servers reach each other through shared memory unless they offer tcp alone.
          ...(transport === 'tcp' ? ['--transport', 'tcp'] : []),
        ],
      },
    );
    process.stdout.write(await use(cluster));
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
    process.exitCode = 2;
  } finally {
    for (const end of ends.reverse()) await end();
  }
}

const transport = {
  choices: ['tcp', 'shm'] as const,
  default: 'tcp' as const,
  describe: 'Of clients, and of the links between servers',
};

await yargs(hideBin(process.argv))
  .scriptName('node dist/bench/copies/main.js')
  .command(
    'failover',
    'What clients notice when a server with copies fails',
    (y) =>
      y
        .option('rounds', { type: 'number', default: 10, coerce: positive, describe: 'Faults, one after the other' })
        .option('what', { choices: FAULTS, default: 'owner' as const, describe: 'The fault' })
        .option('level', {
          choices: ['replicated', 'cache'] as const,
          default: 'replicated' as const,
          describe: 'Of the values; a cache keeps them when its servers are drained',
        })
        .option('transport', transport),
    async (given) => {
      await over(given.transport, '64mb', 2 * SERVERS, given.level, async (cluster) => {
        await copiesMade(cluster.addresses);
        return await failover(cluster, { ...given, note });
      });
    },
  )
  .command(
    'join',
    'How long copies take to be made, and what PUTs notice meanwhile',
    (y) =>
      y
        .option('keys', { type: 'number', default: 1_000_000, coerce: positive, describe: 'Records' })
        .option('value-bytes', { type: 'number', default: 100, coerce: positive, describe: 'Of each value' })
        .option('transport', transport),
    async (given) => {
      const memory = `${2 * memoryFor(given.keys, given.valueBytes)}b`;
      await over(given.transport, memory, 2 * SERVERS, 'cache', (cluster) => join(cluster, { ...given, note }));
    },
  )
  .demandCommand(1, 'failover or join?')
  .fail(wrongUsage)
  .wrap(130)
  .strict()
  .parse();
// A call that is under way may hold the event loop.
process.exit();
