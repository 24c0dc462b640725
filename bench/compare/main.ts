/**
 * `npm run bench:compare`: farkv beside Redis (ioredis, redis-benchmark), memcached and lmdb, on this machine, in one run, round by round in turn.
 * Nothing is installed: what is missing is named. Everything that was started is stopped again, on Ctrl-C too.
 */
import { writeFileSync } from 'node:fs';
import yargs from 'yargs';
import { hideBin } from 'yargs/helpers';
import { line, machine, toJson } from './report.js';
import type { Result } from './row.js';
import { awaitGet, getInto, getIntoAgainstC, outstandingGets, shmGetMany, tcpGetMany } from './rows-get.js';
import { outstandingPuts, putMany, putRate, sequentialPut } from './rows-put.js';
import { memoryPerEntry, serverCpuOverShm, serverCpuOverTcp } from './rows-server.js';
import { ycsb } from './rows-ycsb.js';
import { Stores } from './stores.js';

const args = await yargs(hideBin(process.argv))
  .scriptName('npm run bench:compare --')
  .usage('$0 [options]\n\nfarkv beside Redis, memcached and lmdb: ratios with their spread')
  .option('keys', { type: 'number', default: 100_000, describe: 'Keys of the GET and PUT rows' })
  .option('rounds', { type: 'number', default: 5, describe: 'Rounds of each side, after one to warm up' })
  .option('servers', { type: 'number', default: 1, describe: 'farkv servers' })
  .option('only', { type: 'string', describe: 'Rows whose name matches this regular expression' })
  .option('ycsb', { type: 'string', default: 'a,b,c,d,f', describe: 'Workloads to compare; empty: none' })
  .option('json', { type: 'string', describe: 'Also write the results to this file: a list of { name, goal, measured, spread, met }' })
  .strict()
  .parse();

const stop = new AbortController();
process.once('SIGINT', () => stop.abort());
process.once('SIGTERM', () => stop.abort());

const results: Result[] = [];
const note = (text: string): void => void process.stderr.write(`${text}\n`);
const wanted = (name: string): boolean => args.only === undefined || new RegExp(args.only, 'i').test(name);

async function row(name: string, measure: () => Promise<Result | readonly Result[]>): Promise<void> {
  if (!wanted(name) || stop.signal.aborted) return;
  for (const r of [await measure()].flat()) {
    results.push(r);
    process.stdout.write(`${line(r)}\n`);
  }
}

process.stdout.write(`${machine()}\n\n`);
const { rounds, keys } = args;

let s = await Stores.start(keys, 1000, args.servers, stop.signal, note);
try {
  await row('shm getInto lmdb', () => getInto(s, rounds, 3));
  await row('shm getInto C loop', () => getIntoAgainstC(s, rounds, 1.4));
  await row('shm await get', () => awaitGet(s, 'shm', rounds, 25));
  await row('tcp await get', () => awaitGet(s, 'tcp', rounds, 1.3));
  await row('tcp outstanding', () => outstandingGets(s, 100, rounds, 4));
  await row('tcp getMany', () => tcpGetMany(s, rounds, 1.3));
  await row('server cpu shm', () => serverCpuOverShm(s, 10, 2));
  await row('server cpu tcp', () => serverCpuOverTcp(s, Math.min(rounds, 3), 1 / 3));
  const workloads = args.ycsb.split(',').filter((w) => w !== '');
  await row('ycsb', () => ycsb(s, workloads, 100_000, 200_000, rounds));
} finally {
  await s.stop();
}
s = await Stores.start(keys, 100, args.servers, stop.signal, note);
try {
  await row('shm getMany C loop', () => shmGetMany(s, rounds, 1));
  await row('shm put sequential', () => sequentialPut(s, rounds, 4));
  await row('shm put outstanding', () => outstandingPuts(s, rounds, 4));
  await row('shm put rate', () => putRate(s, rounds, 300_000));
  await row('shm putMany', () => putMany(s, rounds, 1.5));
} finally {
  await s.stop();
}
for (const bytes of [100, 1000]) await row(`memory ${bytes}`, () => memoryPerEntry(keys, bytes, stop.signal, 80));

if (args.json !== undefined) writeFileSync(args.json, toJson(results));
const missed = results.filter((r) => !r.met).length;
process.stdout.write(`\n${results.length - missed} of ${results.length} goals met\n`);
