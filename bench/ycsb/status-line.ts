/** The lines that `-s` prints while a run goes on, as YCSB's status thread writes them. */
import type { Measurements } from './measurements.js';

export interface StatusInput {
  readonly label: string;
  readonly now: Date;
  readonly elapsedMs: number;
  readonly operations: number;
  /** Operations and milliseconds since the last line. */
  readonly intervalOperations: number;
  readonly intervalMs: number;
  /** Operations still to do; 0 when nobody knows. */
  readonly todo: number;
  readonly interval: Measurements;
}

/** As Java's DecimalFormat("#.##"). */
function short(value: number): string {
  return Number.isFinite(value) ? String(Number(value.toFixed(2))) : '0';
}

function timestamp(now: Date): string {
  const two = (n: number) => String(n).padStart(2, '0');
  const date = `${now.getFullYear()}-${two(now.getMonth() + 1)}-${two(now.getDate())}`;
  return `${date} ${two(now.getHours())}:${two(now.getMinutes())}:${two(now.getSeconds())}:${String(now.getMilliseconds()).padStart(3, '0')}`;
}

export function remaining(seconds: number): string {
  const days = Math.floor(seconds / 86_400);
  const hours = Math.floor((seconds % 86_400) / 3600);
  const minutes = Math.floor((seconds % 3600) / 60);
  const part = (n: number, unit: string) => `${n} ${unit}${n === 1 ? '' : 's'} `;
  let text = '';
  if (days > 0) text += part(days, 'day');
  if (hours > 0) text += part(hours, 'hour');
  if (days < 1 && minutes > 0) text += part(minutes, 'minute');
  return text === '' ? part(seconds % 60, 'second') : text;
}

export function statusLine(s: StatusInput): string {
  const current = s.intervalMs > 0 ? (1000 * s.intervalOperations) / s.intervalMs : 0;
  const overall = s.elapsedMs > 0 ? (1000 * s.operations) / s.elapsedMs : 0;
  let line = `${s.label}${timestamp(s.now)} ${Math.floor(s.elapsedMs / 1000)} sec: ${s.operations} operations; `;
  if (s.operations > 0) line += `${short(current)} current ops/sec; `;
  if (s.todo > 0 && overall > 0) line += `est completion in ${remaining(Math.ceil(s.todo / overall))}`;
  for (const { name, histogram } of s.interval) {
    const us = (ns: number) => short(ns / 1000);
    const at = (percentile: number) => us(histogram.getValueAtPercentile(percentile));
    line +=
      `[${name}: Count=${histogram.totalCount}, Max=${us(histogram.maxValue)}, Min=${at(0)}, Avg=${us(histogram.mean)}, 50=${at(50)}, ` +
      `90=${at(90)}, 99=${at(99)}, 99.9=${at(99.9)}, 99.99=${at(99.99)}] `;
  }
  return line.trimEnd();
}
