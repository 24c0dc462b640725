/** The memory of tables of a server's process, for tests in which bits of it flip. */
import { closeSync, openSync, readFileSync, readSync, writeSync } from 'node:fs';

const HEAP = 'memfd:farkv-heap';
const PIECE = 1 << 20;

interface Range {
  readonly from: number;
  readonly to: number;
}

function rangesOf(pid: number): Range[] {
  return readFileSync(`/proc/${pid}/maps`, 'utf8')
    .split('\n')
    .flatMap((line) => {
      const [, from, to] = /^([0-9a-f]+)-([0-9a-f]+) rw/.exec(line) ?? [];
      return line.includes(HEAP) && from !== undefined && to !== undefined
        ? [{ from: Number.parseInt(from, 16), to: Number.parseInt(to, 16) }]
        : [];
    });
}

/** Flips a bit in each place where the text lies in entries; how many there were. */
export function flipBits(pid: number, text: string): number {
  const memory = openSync(`/proc/${pid}/mem`, 'r+');
  const wanted = Buffer.from(text);
  let found = 0;
  try {
    for (const { from, to } of rangesOf(pid))
      for (let at = from; at < to; at += PIECE) {
        // And so much of the next piece that a text across the border is found.
        const bytes = Buffer.alloc(Math.min(PIECE + wanted.length - 1, to - at));
        readSync(memory, bytes, 0, bytes.length, at);
        for (let i = bytes.indexOf(wanted); i >= 0; i = bytes.indexOf(wanted, i + 1), found++)
          writeSync(memory, Buffer.of(wanted[0]! ^ 1), 0, 1, at + i);
      }
  } finally {
    closeSync(memory);
  }
  return found;
}
