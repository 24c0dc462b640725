/**
 * `node dist/test/chaos/main.js --seconds 600 --seed N`: five servers and six clients as processes, under kill -9, orderly restarts, pauses and
 * cuts of the network both ways and one way, while the clients read and change a few keys; then every history is checked for
 * linearizability. Prints what was done and found; exit code 1 when something is wrong, with the command that makes the same faults again.
 */
import { parseArgs } from 'node:util';
import { run } from './run.js';

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '60' },
    seed: { type: 'string' },
    servers: { type: 'string', default: '5' },
    clients: { type: 'string', default: '6' },
    rate: { type: 'string', default: '600' },
    'at-least': { type: 'string' },
    quiet: { type: 'boolean', default: false },
  },
});

const seconds = Number(values.seconds);
const seed = values.seed === undefined ? Math.floor(Math.random() * 2 ** 31) : Number(values.seed);
const began = performance.now();
const say = (text: string): void => {
  if (!values.quiet) process.stderr.write(`${((performance.now() - began) / 1000).toFixed(1).padStart(7)} s  ${text}\n`);
};
const replay = `node dist/test/chaos/main.js --seconds ${seconds} --seed ${seed} --servers ${values.servers} --clients ${values.clients} --rate ${values.rate}`;
say(`seed ${seed}; the same faults again: ${replay}`);

// Servers and clients end with their standard input, namespaces as network.ts says.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130));
const report = await run({
  seed, seconds, servers: Number(values.servers), clients: Number(values.clients), operationsPerSecond: Number(values.rate),
  operationsMin: Number(values['at-least'] ?? Math.round((100_000 * seconds) / 600)), say,
});
const { failures, directory, ...figures } = report;
process.stdout.write(`${JSON.stringify({ seed, seconds, ...figures, failures: failures.length }, undefined, 2)}\n`);
if (failures.length > 0) {
  process.stderr.write(`${failures.slice(0, 5).join('\n\n')}\n\n${failures.length} failures. Histories and logs: ${directory}\nreplay: ${replay}\n`);
  process.exitCode = 1;
}
