import test from 'ava';
import type { LogLevel } from '../core/log-level.js';
import { Log, type LogFields } from './log.js';
import { reportSlow } from './slow-lines.js';

test('a slow request is in the log with the hash of its key, and what was left out is counted', (t) => {
  const plane: Parameters<typeof reportSlow>[0] = { onSlow: undefined };
  const lines: (readonly [LogLevel, string, LogFields | undefined])[] = [];
  reportSlow(plane, new Log('info', (...line) => lines.push(line as never)));
  const slow = {
    operation: 'put',
    result: 'ok',
    worker: 1,
    shard: 7,
    keyHash: '00000000000000ab',
    client: '01',
  } as const;
  plane.onSlow?.({ ...slow, ms: 123.456789 }, 0);
  plane.onSlow?.({ operation: 'lease', result: 'ERR_BUSY', worker: 0, shard: 0, ms: 200 }, 3);
  t.deepEqual(lines, [
    [
      'warn',
      'put of key 00000000000000ab by client 01 took 123.457 ms at worker 1, shard 7: ok',
      { event: 'slow-request', tookMs: 123.457, ...slow },
    ],
    ['warn', '(3 lines of requests were not written)', { event: 'omitted', count: 3, of: 'slow-request' }],
    [
      'warn',
      'lease took 200 ms at worker 0, shard 0: ERR_BUSY',
      { event: 'slow-request', tookMs: 200, operation: 'lease', result: 'ERR_BUSY', worker: 0, shard: 0 },
    ],
  ]);
});
