/**
 * A benchmark thread: the worker that runner.ts starts. Connects, says `ready`, waits for the main thread's first
 * message, does its share and sends what it measured. Not for: adding up, printing.
 */
import { once } from 'node:events';
import { PerformanceObserver } from 'node:perf_hooks';
import { parentPort, workerData } from 'node:worker_threads';
import { openDatabase } from './databases/open.js';
import { Lanes } from './lanes.js';
import { Measurements } from './measurements.js';
import type { GcFacts, ThreadMessage, ThreadTask } from './protocol.js';
import { Random, threadSeed } from './random.js';
import { nowNs, Workload } from './workload.js';

/** Errors of operations that are shown; the rest is only counted. */
const ERRORS_SHOWN = 3;

function watchGc(): () => GcFacts {
  let count = 0;
  let ms = 0;
  const add = (entries: readonly { readonly duration: number }[]) => {
    for (const { duration } of entries) {
      count++;
      ms += duration;
    }
  };
  const observer = new PerformanceObserver((list) => add(list.getEntries()));
  observer.observe({ entryTypes: ['gc'] });
  return () => {
    add(observer.takeRecords());
    observer.disconnect();
    return { count, ms };
  };
}

async function main(
  task: ThreadTask,
  send: (message: ThreadMessage) => void,
  started: Promise<unknown>,
): Promise<void> {
  const { parameters } = task;
  const random = new Random(threadSeed(parameters.seed, task.thread));
  const database = openDatabase(task.database, {
    properties: task.properties,
    lanes: parameters.outstanding,
    parameters,
  });
  await database.init();
  const measurements = new Measurements(parameters.measurementInterval);
  let errors = 0;
  const onError = (operation: string, error: unknown) => {
    if (errors++ < ERRORS_SHOWN)
      send({ type: 'error', operation, text: error instanceof Error ? error.message : String(error) });
  };
  const workload = new Workload(parameters, task.shared, random, database, measurements, onError, task.histogram);
  const lanes = new Lanes(task, workload, (interval) => {
    send({ type: 'interval', interval, series: measurements.snapshot() });
    measurements.reset();
  });
  send({ type: 'ready' });
  await started;
  const gcFacts = watchGc();
  const startMs = performance.timeOrigin + performance.now();
  await lanes.run(() => random.double());
  const endMs = performance.timeOrigin + performance.now();
  const gc = gcFacts();
  const facts = await database.facts();
  const start = nowNs();
  await database.cleanup();
  measurements.operation('CLEANUP', 'OK', start, start, nowNs());
  send({ type: 'done', operations: lanes.done, startMs, endMs, series: measurements.snapshot(), facts, gc });
}

const port = parentPort;
if (port === null) throw new Error('thread.ts runs in a worker thread');
const send = (message: ThreadMessage) => port.postMessage(message);
main(workerData as ThreadTask, send, once(port, 'message'))
  .catch((error: unknown) => {
    const code =
      error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : 'ERR_INTERNAL';
    send({ type: 'failed', code, text: error instanceof Error ? error.message : String(error) });
  })
  .finally(() => port.close());
