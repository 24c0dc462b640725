/**
 * How many descriptors this process may have, and so how many of them connections without a login may take: without a
 * free one, nobody's connection is accepted.
 */
import { readFileSync } from 'node:fs';
import type { PlacesOptions } from './places.js';

/** A room of places takes no more than one part of so many. There are four, and two of the HTTP port. */
const PARTS = 16;

/** The limit as it was when the process began: Node.js has raised it as far as it may. Infinity where it is not known. */
export function descriptorsMax(limits = readLimits()): number {
  return Number(/^Max open files +(\d+) /m.exec(limits)?.[1] ?? Infinity);
}

function readLimits(): string {
  try {
    return readFileSync('/proc/self/limits', 'latin1');
  } catch {
    return '';
  }
}

/** The same places, but for rooms that would take too many of the descriptors. */
export function withinDescriptors<T extends Pick<PlacesOptions, 'strangers' | 'known'>>(
  places: T,
  descriptors = descriptorsMax(),
): T {
  const most = Math.max(1, Math.floor(descriptors / PARTS));
  return { ...places, strangers: Math.min(places.strangers, most), known: Math.min(places.known, most) };
}
