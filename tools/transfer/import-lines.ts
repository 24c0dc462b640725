/** Lines of JSON into a cluster. A bad line is reported by its number; then it stops there, or goes on. */
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
  stream: AsyncIterable<Buffer>,
  { namespace, keep, skip, onBad, onRead }: LinesOptions,
): Promise<LinesDone> {
  const writer = new EntryWriter(target, keep);
  let bad = 0;
  let lines = 0;
  let bytes = 0;
  const isBad = (line: number, why: string): void => {
    bad++;
    onBad(line, why);
  };
  try {
    for await (const { number, bytes: line } of linesOf(stream)) {
      if (bad > 0 && !skip) break;
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
    await writer.end();
  }
  return { lines, bad, written: writer.written, kept: writer.kept, expired: writer.expired };
}

const isBlank = (line: Buffer): boolean => line.length < 8 && line.toString('latin1').trim() === '';
