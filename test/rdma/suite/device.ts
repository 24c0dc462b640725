/**
 * The RDMA device that the suite runs over: what it holds and counts, and what server processes spend. Linux's rdma
 * tool and /proc only.
 */
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { addon, type RdmaAddress } from '../../../native/addon.js';

function rdma(...args: readonly string[]): string {
  const { stdout, stderr, status } = spawnSync('rdma', args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`rdma ${args.join(' ')}: ${stderr}`);
  return stdout;
}

/** The one that FARKV_RDMA_DEVICE names, else the first. */
export function deviceUnderTest(): RdmaAddress {
  const found = addon.rdmaAddresses();
  const named = process.env.FARKV_RDMA_DEVICE;
  const device = named === undefined ? found[0] : found.find((a) => a.device === named);
  if (device === undefined)
    throw new Error(`no address leads to ${named ?? 'an RDMA device'} (farkv doctor says more)`);
  return device;
}

/** Queue pairs, regions and the rest that are there now: `rdma resource` without the device's number. */
export function resources(device: string): string {
  return rdma('resource', 'show', device)
    .replace(/^\d+:\s*/, '')
    .trim();
}

/** The device's counters by name; empty where it has none (soft-iWARP). */
export function counters(device: string): ReadonlyMap<string, number> {
  const found = new Map<string, number>();
  const { stdout, stderr, status } = spawnSync('rdma', ['statistic', 'show', 'link', `${device}/1`], {
    encoding: 'utf8',
  });
  if (status !== 0 && !/Invalid argument|not supported/.test(stderr))
    throw new Error(`rdma statistic show link ${device}/1: ${stderr}`);
  for (const [, name, value] of stdout.matchAll(/(\w+) (\d+)(?=\s|$)/g)) {
    if (name !== undefined) found.set(name, Number(value));
  }
  return found;
}

/** By a thread. */
export interface ThreadSpent {
  readonly cpuMs: number;
  /** Times that it slept and was woken. */
  readonly waits: number;
  /** Times that it was made to give way to somebody else. */
  readonly preemptions: number;
}

/** By all threads of a process: number and name. */
export type Spent = ReadonlyMap<string, ThreadSpent>;

export function spent(pid: number): Spent {
  const found = new Map<string, ThreadSpent>();
  for (const thread of readdirSync(`/proc/${pid}/task`)) {
    const read = (file: string): string => readFileSync(`/proc/${pid}/task/${thread}/${file}`, 'utf8');
    const status = read('status');
    found.set(`${thread} ${read('comm').trim()}`, {
      // To the nanosecond, where utime and stime are what a clock of 100 ticks a second happened to meet.
      cpuMs: Number(read('schedstat').split(' ')[0]) / 1e6,
      waits: Number(/^voluntary_ctxt_switches:\s*(\d+)/m.exec(status)?.[1]),
      preemptions: Number(/^nonvoluntary_ctxt_switches:\s*(\d+)/m.exec(status)?.[1]),
    });
  }
  return found;
}

/** Lets a process, with all its threads, run on these processors only: `0`, or `1-3`. */
export function onProcessors(pid: number, list: string): void {
  const { stderr, status } = spawnSync('taskset', ['--all-tasks', '--cpu-list', '--pid', list, String(pid)], {
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(`taskset ${list} ${pid}: ${stderr}`);
}
