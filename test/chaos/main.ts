/**
 * `node dist/test/chaos/main.js --seconds 600 --seed N`: five servers and six clients as processes, under kill -9, orderly restarts, pauses and
 * cuts of the network both ways and one way, while the clients read and change a few keys; then every history is checked for
 * linearizability. Prints what was done and found; exit code 1 when something is wrong, with the command that makes the same faults again.
 */
import yargs from 'yargs';
import { hideBin } from 'yargs/helpers';
import { run } from './run.js';
import { wrongUsage } from '../support/wrong-usage.js';

const atLeast = (name: string, low: number) => (value: number): number => {
  if (!Number.isInteger(value) || value < low) throw new Error(`--${name}: a whole number from ${low} on`);
  return value;
};
const values = await yargs(hideBin(process.argv))
  .scriptName('node dist/test/chaos/main.js')
  .usage('$0 [options]\n\nServers and clients as processes, faults, and histories that must be linearizable. As root hosts are cut off too')
  .option('seconds', { type: 'number', default: 60, coerce: atLeast('seconds', 1), describe: 'How long faults are made' })
  .option('seed', { type: 'number', coerce: atLeast('seed', 0), describe: 'Of the faults. Default: at random' })
  .option('servers', { type: 'number', default: 5, coerce: atLeast('servers', 1), describe: 'Server processes' })
  .option('clients', { type: 'number', default: 6, coerce: atLeast('clients', 1), describe: 'Client processes' })
  .option('rate', { type: 'number', default: 600, coerce: atLeast('rate', 1), describe: 'Operations a second, over all clients' })
  .option('at-least', { type: 'number', coerce: atLeast('at-least', 0), describe: 'Fewer operations are a failure. Default: 100,000 in 600 s' })
  .option('quiet', { type: 'boolean', default: false, describe: 'Print the report only' })
  .fail(wrongUsage)
  .wrap(130)
  .strict()
  .parse();

const { seconds } = values;
const seed = values.seed ?? Math.floor(Math.random() * 2 ** 31);
const began = performance.now();
const say = (text: string): void => {
  if (!values.quiet) process.stderr.write(`${((performance.now() - began) / 1000).toFixed(1).padStart(7)} s  ${text}\n`);
};
const replay = `node dist/test/chaos/main.js --seconds ${seconds} --seed ${seed} --servers ${values.servers} --clients ${values.clients} --rate ${values.rate}`;
say(`seed ${seed}; the same faults again: ${replay}`);

// Servers and clients end with their standard input, namespaces as network.ts says.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130));
const report = await run({
  seed, seconds, servers: values.servers, clients: values.clients, operationsPerSecond: values.rate,
  operationsMin: values.atLeast ?? Math.round((100_000 * seconds) / 600), say,
});
const { failures, directory, ...figures } = report;
process.stdout.write(`${JSON.stringify({ seed, seconds, ...figures, failures: failures.length }, undefined, 2)}\n`);
if (failures.length > 0) {
  process.stderr.write(`${failures.slice(0, 5).join('\n\n')}\n\n${failures.length} failures. Histories and logs: ${directory}\nreplay: ${replay}\n`);
  process.exitCode = 1;
}
