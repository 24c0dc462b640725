/**
 * Descriptors of the server's process: a warning at start where the limit may not be enough for --memory. Node.js raises
 * the soft limit to the hard one when it starts, so only the hard one is left to people. That a table has got no memory
 * for want of one (native/base/files.h) memory-watch.ts says.
 */
import { readFileSync } from 'node:fs';
import { formatSize } from '../core/size.js';

/** What to do, for the log and for `farkv status`. */
export const RAISE_DESCRIPTORS =
  'raise the limit of open files (LimitNOFILE= of its systemd unit, --ulimit nofile= of its container, ulimit -Hn in a shell), and start it again';

const MIB = 1 << 20;
/** Memory files of a shard: so many at first, and at most so many more each time that its memory doubles. */
const FIRST = 2;
const PER_DOUBLING = 8;
/** Of the limit; the rest is for connections. */
const FOR_MEMORY = 3 / 4;

/** Descriptors that this process may have; Infinity: unknown, or without a limit. */
export function descriptorLimit(limits: () => string = () => readFileSync('/proc/self/limits', 'utf8')): number {
  try {
    return Number(/^Max open files +(\d+)/m.exec(limits())?.[1] ?? Infinity);
  } catch {
    return Infinity;
  }
}

/** At most so many descriptors are memory, when `memoryBytes` are full in so many shards. */
export function memoryDescriptors(memoryBytes: number, shards: number): number {
  const doublings = Math.max(0, Math.log2(memoryBytes / Math.max(1, shards) / MIB));
  return Math.ceil(shards * (FIRST + PER_DOUBLING * doublings));
}

interface FewDescriptors {
  /** A line for the log. */
  readonly text: string;
  readonly limit: number;
  readonly needed: number;
}

/** Undefined: they are enough. */
export function fewDescriptors(
  memoryBytes: number,
  shards: number,
  limit = descriptorLimit(),
): FewDescriptors | undefined {
  const needed = memoryDescriptors(memoryBytes, shards);
  if (needed <= limit * FOR_MEMORY) return undefined;
  const text = `this process may have ${limit} file descriptors, and --memory ${formatSize(memoryBytes)} in ${shards} shards may need ${needed} beside those of connections: ${RAISE_DESCRIPTORS}`;
  return { text, limit, needed };
}
