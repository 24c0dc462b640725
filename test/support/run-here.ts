/** `farkv ...` in the process of the test, for tests of many commands: one at a time (test.serial). */
import { main } from '../../server/cli/run.js';

/** What it has printed on standard output and error, in order, and its exit code. */
export async function printed(
  args: readonly string[],
): Promise<{ readonly text: string; readonly code: typeof process.exitCode }> {
  let text = '';
  const streams = [process.stdout, process.stderr];
  const writes = streams.map((stream) => stream.write.bind(stream));
  const take = ((chunk: string | Uint8Array) => {
    text += typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString();
    return true;
  }) as typeof process.stdout.write;
  for (const stream of streams) stream.write = take;
  const before = process.exitCode;
  process.exitCode = undefined;
  try {
    await main(args);
    return { text, code: process.exitCode };
  } finally {
    for (const [i, write] of writes.entries()) streams[i]!.write = write;
    process.exitCode = before;
  }
}
