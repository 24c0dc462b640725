import test from 'ava';
import type { DataPlane } from '../native/data-plane.js';
import { reportEnds } from './ended-connections.js';
import { Log, type LogFields } from './log.js';

test('the log says whose connection was ended and why, and not without end', (t) => {
  const plane: Pick<DataPlane, 'onEnded'> = { onEnded: undefined };
  const lines: string[] = [];
  const written: (LogFields | undefined)[] = [];
  reportEnds(
    plane,
    new Log('info', (level, text, fields) => {
      lines.push(`${level} ${text}`);
      written.push(fields);
    }),
  );
  for (let i = 0; i < 100; i++)
    plane.onEnded?.({ client: 0xabcn, worker: 2, provider: 'tcp', why: 'quota', requests: 513 });
  t.is(
    lines[0],
    'warn worker 2 ended the tcp connection of client 0000000000000abc: more than twice as many requests as --client-quota allows were at the worker. 513 of its requests were at this worker; farkv clients shows who it is',
  );
  t.true(lines.length < 100);
  t.like(written[0], {
    event: 'connection-ended',
    client: '0000000000000abc',
    transport: 'tcp',
    worker: 2,
    why: 'quota',
    requests: 513,
  });
});
