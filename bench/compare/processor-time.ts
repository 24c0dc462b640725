/** CPU time of processes as the kernel accounts it: utime + stime of all threads, from /proc/PID/stat (proc(5)). */
import { readFileSync } from 'node:fs';
import { spawnSync } from 'node:child_process';

let ticks: number | undefined;

function ticksPerSecond(): number {
  ticks ??= Number(spawnSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }).stdout) || 100;
  return ticks;
}

/** Seconds that the process has spent since it started. The name in field 2 may hold spaces and brackets, so count from the last one. */
export function processorSeconds(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond();
}
