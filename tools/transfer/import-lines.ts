/**
 * Lines of JSON into a cluster. A bad line is reported by its number; then it stops there, or goes on. Where it stops it
 * waits for nothing more of the stream, whose other end may be open for ever.
 */
import type { Readable } from 'node:stream';
import { EntryWriter, isOfEntry } from './entry-writer.js';
import { entryOfLine, LineError, LINE_BYTES_MAX, linesOf } from './json-lines.js';

export interface LinesOptions {
  /** Of lines that have none. */
  readonly namespace: number;
  /** Only keys that are absent. */
  readonly keep: boolean;
  /** Go on after a bad line. */
  readonly skip: boolean;
  readonly onBad: (line: number, why: string) => void;
  readonly onRead: (lines: number, bytes: number) => void;
}

export interface LinesDone {
  /** Lines read, the last one included where it stopped. */
  readonly lines: number;
  readonly bad: number;
  readonly written: number;
  readonly kept: number;
  readonly expired: number;
}

export async function importJsonLines(
  target: ConstructorParameters<typeof EntryWriter>[0],
  stream: Readable,
  { namespace, keep, skip, onBad, onRead }: LinesOptions,
): Promise<LinesDone> {
  const writer = new EntryWriter(target, keep);
  let bad = 0;
  let lines = 0;
  let bytes = 0;
  let stop: () => void = () => undefined;
  const stopped = new Promise<undefined>((resolve) => (stop = () => resolve(undefined)));
  const isBad = (line: number, why: string): void => {
    bad++;
    onBad(line, why);
    if (!skip) stop();
  };
  const all = linesOf(stream);
  try {
    for (;;) {
      const next = await Promise.race([stopped, writer.failed, all.next()]);
      if (next === undefined || next.done === true) break;
      const { number, bytes: line } = next.value;
      lines = number;
      bytes += (line?.length ?? 0) + 1;
      if (line !== undefined && isBlank(line)) continue;
      try {
        if (line === undefined)
          throw new LineError(`it has more than ${LINE_BYTES_MAX} bytes; large values take least as value64`);
        const entry = entryOfLine(line, namespace);
        await writer.put(entry, (error) => {
          if (!isOfEntry(error)) return false;
          isBad(number, error.message);
          return true;
        });
      } catch (error) {
        if (!(error instanceof LineError)) throw error;
        isBad(number, error.message);
      }
      onRead(number, bytes);
    }
  } finally {
    stream.destroy();
    await writer.end();
  }
  return { lines, bad, written: writer.written, kept: writer.kept, expired: writer.expired };
}

const isBlank = (line: Buffer): boolean => line.length < 8 && line.toString('latin1').trim() === '';
