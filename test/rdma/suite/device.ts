/** The RDMA device that the suite runs over: what it holds and counts, and what server processes spend. Linux's rdma tool and /proc only. */
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
  if (device === undefined) throw new Error(`no address leads to ${named ?? 'an RDMA device'} (farkv doctor says more)`);
  return device;
}

/** Queue pairs, regions and the rest that are there now: `rdma resource` without the device's number. */
export function resources(device: string): string {
  return rdma('resource', 'show', device).replace(/^\d+:\s*/, '').trim();
}

/** The device's counters by name; empty where it has none (soft-iWARP). */
export function counters(device: string): ReadonlyMap<string, number> {
  const found = new Map<string, number>();
  const { stdout, stderr, status } = spawnSync('rdma', ['statistic', 'show', 'link', `${device}/1`], { encoding: 'utf8' });
  if (status !== 0 && !/Invalid argument|not supported/.test(stderr)) throw new Error(`rdma statistic show link ${device}/1: ${stderr}`);
  for (const [, name, value] of stdout.matchAll(/(\w+) (\d+)(?=\s|$)/g)) {
    if (name !== undefined) found.set(name, Number(value));
  }
  return found;
}

/** By a process, all its threads. */
export interface Spent {
  readonly cpuSeconds: number;
  /** Times that a thread slept and was woken. */
  readonly waits: number;
  /** Times that one was made to give way to somebody else. */
  readonly preemptions: number;
}

export function spent(pid: number): Spent {
  let [cpuNs, waits, preemptions] = [0, 0, 0];
  for (const thread of readdirSync(`/proc/${pid}/task`)) {
    const status = readFileSync(`/proc/${pid}/task/${thread}/status`, 'utf8');
    waits += Number(/^voluntary_ctxt_switches:\s*(\d+)/m.exec(status)?.[1]);
    preemptions += Number(/^nonvoluntary_ctxt_switches:\s*(\d+)/m.exec(status)?.[1]);
    // To the nanosecond, where utime and stime are what a clock of 100 ticks a second happened to meet.
    cpuNs += Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')[0]);
  }
  return { cpuSeconds: cpuNs / 1e9, waits, preemptions };
}
