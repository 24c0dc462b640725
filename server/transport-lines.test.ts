import test from 'ava';
import { once } from 'node:events';
import { connect } from 'node:net';
import type { LogLevel } from '../core/log-level.js';
import { Plane } from '../test/support/native-pair.js';
import { Log, type LogFields } from './log.js';
import { reportTransports } from './transport-lines.js';

const GARBAGE = Buffer.from('GET / HTTP/1.1\r\nHost: here\r\n\r\n'.repeat(20));

/** Resolves when the other end has cut the connection. */
async function sendGarbage(address: string): Promise<void> {
  const [, host = '', port = ''] = /^(.*):(\d+)$/.exec(address) ?? [];
  const socket = connect(Number(port), host);
  socket.on('error', () => undefined).resume();
  socket.write(GARBAGE);
  await once(socket, 'close');
}

test('what a transport reports is in the log with its level and fields, and not without end', async (t) => {
  const plane = await Plane.start({ provider: 'tcp' });
  const lines: { readonly level: LogLevel; readonly text: string; readonly fields: LogFields | undefined }[] = [];
  let last: (() => void) | undefined;
  const first = new Promise<void>((resolve) => (last = resolve));
  const log = new Log('info', (level, text, fields) => {
    lines.push({ level, text, fields });
    last?.();
  });
  reportTransports(plane.native, log);
  for (let i = 0; i < 100; i++) await sendGarbage(plane.address);
  await first;
  await plane.native.stats();
  const message = 'tcp: a peer sent what is no valid frame; connection closed';
  t.deepEqual(lines[0], { level: 'warn', text: message, fields: { event: 'transport', message } });
  t.true(lines.length <= 41, `${lines.length} lines`);
  await plane.close();
});

test('lines that were not written are counted', (t) => {
  const plane: Parameters<typeof reportTransports>[0] = { onFabricLog: undefined };
  const lines: (LogFields | undefined)[] = [];
  reportTransports(plane, new Log('warn', (_, __, fields) => lines.push(fields)));
  plane.onFabricLog?.('info', 'tcp: a peer said nothing; dropped', 0);
  plane.onFabricLog?.('error', 'shm: accept: Too many open files', 7);
  t.deepEqual(lines, [
    { event: 'omitted', count: 7, of: 'transport' },
    { event: 'transport', message: 'shm: accept: Too many open files' },
  ]);
});
