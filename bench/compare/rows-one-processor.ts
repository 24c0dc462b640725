/**
 * Client and servers on one processor, as in a container that has no more: who waits without letting the other run
 * makes it slower. 100 B, one operation at a time, against ioredis on the same processor.
 */
import { execFileSync } from 'node:child_process';
import type { Lab } from './lab.js';
import { drawing, medianNs } from './loops.js';
import { atLeast, compare, type Part } from './row.js';

const OPERATIONS = 20_000;

/** What `taskset -cp PID` prints ends with the list. */
function processorsOf(pid: number): string {
  return (
    execFileSync('taskset', ['-cp', String(pid)], { encoding: 'utf8' })
      .split(':')
      .at(-1)
      ?.trim() ?? '0'
  );
}

function bind(pid: number, processors: string): void {
  execFileSync('taskset', ['-acp', processors, String(pid)], { stdio: 'ignore' });
}

/** While `work` runs, all threads of these processes have the first processor that this one may use, and no other. */
async function onOneProcessor<T>(pids: readonly number[], work: () => Promise<T>): Promise<T> {
  const before = pids.map((pid) => [pid, processorsOf(pid)] as const);
  const [first = '0'] = processorsOf(process.pid).split(/[-,]/);
  try {
    for (const pid of pids) bind(pid, first);
    return await work();
  } finally {
    for (const [pid, processors] of before) bind(pid, processors);
  }
}

export async function oneProcessor(lab: Lab, goal: number): Promise<Part[]> {
  const s = await lab.stores(100);
  const [shm, tcp, cluster, redis] = [await s.shm(), await s.tcp(), await s.cluster(), await s.redis()];
  const set = (key: string): Promise<unknown> => redis.client.set(key, s.value);
  const get = (key: string): Promise<unknown> => redis.client.getBuffer(key);
  const kinds = [
    { name: 'shm put', ours: (key: string) => shm.put(key, s.value), theirs: set },
    { name: 'tcp get', ours: (key: string) => tcp.get(key), theirs: get },
    { name: 'tcp put', ours: (key: string) => tcp.put(key, s.value), theirs: set },
  ];
  return await onOneProcessor([process.pid, ...cluster.pids, redis.peer.pid], async () => {
    const parts: Part[] = [];
    for (const { name, ours, theirs } of kinds) {
      const [ourKeys, theirKeys] = [drawing(s.keys), drawing(s.keys)];
      parts.push(
        await compare(
          lab,
          `${name}, one at a time, p50, all on one processor, against ioredis`,
          atLeast(goal, 'times lower'),
          { name: 'farkv', run: () => medianNs(ourKeys(OPERATIONS), ours) },
          { name: 'ioredis', run: () => medianNs(theirKeys(OPERATIONS), theirs) },
          'time',
        ),
      );
    }
    return parts;
  });
}
