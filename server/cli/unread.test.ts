import test from 'ava';
import { once } from 'node:events';
import { Writable } from 'node:stream';
import { BoundedLines } from './unread.js';

/** Takes nothing until it is read. */
class Pipe extends Writable {
  readonly got: string[] = [];
  #isRead = false;
  #taken: () => void = () => undefined;

  constructor() {
    super({ highWaterMark: 16 });
  }

  override _write(chunk: Buffer, _encoding: string, taken: () => void): void {
    this.got.push(String(chunk));
    this.#taken = taken;
    if (this.#isRead) taken();
  }

  read(): void {
    this.#isRead = true;
    this.#taken();
  }
}

test('lines that nobody reads are kept up to a bound, and the others counted until it is read again', async (t) => {
  const pipe = new Pipe();
  const lines = new BoundedLines(pipe, (count) => `${count} left out\n`, 40);
  for (let i = 0; i < 9; i++) lines.write(`line ${i}...\n`);
  lines.write('\n');
  t.is(pipe.writableLength, 40, 'and what would fit is left out behind the first');
  const drained = once(pipe, 'drain');
  pipe.read();
  await drained;
  lines.write('next\n');
  pipe.end();
  await once(pipe, 'finish');
  t.deepEqual(pipe.got, ['line 0...\n', 'line 1...\n', 'line 2...\n', 'line 3...\n', '6 left out\n', 'next\n']);
});

test('the last line is written whatever waits, behind how many were left out', async (t) => {
  const pipe = new Pipe();
  const lines = new BoundedLines(pipe, (count) => `${count} left out\n`, 20);
  for (let i = 0; i < 4; i++) lines.write(`line ${i}...\n`);
  lines.writeLast('why it ends\n');
  pipe.read();
  pipe.end();
  await once(pipe, 'finish');
  t.deepEqual(pipe.got, ['line 0...\n', 'line 1...\n', '2 left out\n', 'why it ends\n']);
});

test('no line is left out of what is read', async (t) => {
  const pipe = new Pipe();
  const lines = new BoundedLines(pipe, (count) => `${count} left out\n`, 40);
  pipe.read();
  for (let i = 0; i < 9; i++) {
    lines.write(`line ${i}...\n`);
    await new Promise((resolve) => setImmediate(resolve));
  }
  pipe.end();
  await once(pipe, 'finish');
  t.is(pipe.got.length, 9);
});
