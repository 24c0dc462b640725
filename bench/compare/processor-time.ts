/**
 * CPU time of processes as the kernel accounts it, user and system, all threads: to the nanosecond from
 * /proc/PID/task/TID/schedstat where the kernel has it (CONFIG_SCHED_INFO), else in hundredths of a second from
 * /proc/PID/stat (proc(5)). A thread that ended is no longer in the former: the servers' threads stay.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { spawnSync } from 'node:child_process';

let ticks: number | undefined;

function ticksPerSecond(): number {
  ticks ??= Number(spawnSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }).stdout) || 100;
  return ticks;
}

/** utime + stime. The name in field 2 may hold spaces and brackets, so count from the last one. */
function secondsByTicks(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond();
}

/** A thread may end while it is looked at. */
function threadSeconds(pid: number, thread: string): number {
  try {
    return Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')[0]) / 1e9;
  } catch {
    return 0;
  }
}

/** Seconds that the process has spent since it started. Throws when there is no such process. */
export function processorSeconds(pid: number): number {
  if (!existsSync('/proc/self/schedstat')) return secondsByTicks(pid);
  return readdirSync(`/proc/${pid}/task`).reduce((sum, thread) => sum + threadSeconds(pid, thread), 0);
}

/** Seconds of the threads of the process whose name begins so. Throws where the kernel does not account threads. */
export function threadsSeconds(pid: number, name: string): number {
  if (!existsSync('/proc/self/schedstat'))
    throw new Error('this kernel does not say what a thread spends: it has no CONFIG_SCHED_INFO');
  return readdirSync(`/proc/${pid}/task`)
    .filter((thread) => readFileSync(`/proc/${pid}/task/${thread}/comm`, 'utf8').startsWith(name))
    .reduce((sum, thread) => sum + threadSeconds(pid, thread), 0);
}

/** All of them together. */
export const totalSeconds = (pids: readonly number[]): number =>
  pids.reduce((sum, pid) => sum + processorSeconds(pid), 0);
