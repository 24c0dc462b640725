import test from 'ava';
import type { MetadataState } from '../core/metadata/state.js';
import type { LogLevel } from '../core/log-level.js';
import { Log, type LogFields } from './log.js';
import { reportSlow } from './slow-lines.js';

test('a slow request is in the log with the hash of its key, and what was left out is counted', (t) => {
  const plane: Parameters<typeof reportSlow>[0] = { onSlow: undefined };
  const lines: (readonly [LogLevel, string, LogFields | undefined])[] = [];
  const copies = [{ id: '00000000000000cd', member: 's2' }];
  const state = { copySets: [{ copies }] } as unknown as MetadataState;
  reportSlow(plane, () => state, new Log('info', (...line) => lines.push(line as never)));
  const about = {
    operation: 'put',
    result: 'ok',
    worker: 1,
    shard: 7,
    keyHash: '00000000000000ab',
    client: '01',
  } as const;
  const slow = { slow: true, ...about };
  plane.onSlow?.({ ...slow, ms: 123.456789 }, 0);
  for (const last of ['00000000000000cd', '00000000000000ef', 'disk', 'log', 'config'])
    plane.onSlow?.({ ...slow, shard: 0, ms: 120.2, queuedMs: 0.0123, heldMs: 119.5, last }, 0);
  plane.onSlow?.({ slow: true, operation: 'lease', result: 'ERR_BUSY', worker: 0, shard: 0, ms: 200 }, 3);
  t.deepEqual(lines, [
    [
      'warn',
      'put of key 00000000000000ab by client 01 took 123.457 ms at worker 1, shard 7: ok',
      { event: 'slow-request', tookMs: 123.457, ...about },
    ],
    ...(
      [
        [{ last: 'copy', server: 's2' }, 's2 had it'],
        [{ last: 'copy', server: '00000000000000ef' }, '00000000000000ef had it'],
        [{ last: 'disk' }, 'it was on the disk'],
        [{ last: 'log' }, 'its log had it'],
        [{ last: 'config' }, 'the copies were others'],
      ] as const
    ).map(
      ([fields, until]) =>
        [
          'warn',
          `put of key 00000000000000ab by client 01 took 120.2 ms at worker 1, shard 0: ok (0.012 ms until its turn, 119.5 ms until ${until})`,
          { event: 'slow-request', tookMs: 120.2, ...about, shard: 0, queuedMs: 0.012, heldMs: 119.5, ...fields },
        ] as const,
    ),
    ['warn', '(3 lines of requests were not written)', { event: 'omitted', count: 3, of: 'slow-request' }],
    [
      'warn',
      'lease took 200 ms at worker 0, shard 0: ERR_BUSY',
      { event: 'slow-request', tookMs: 200, operation: 'lease', result: 'ERR_BUSY', worker: 0, shard: 0 },
    ],
  ]);
});

test('a request that was not slow is told by another name, at another level', (t) => {
  const plane: Parameters<typeof reportSlow>[0] = { onSlow: undefined };
  const lines: (readonly [LogLevel, unknown])[] = [];
  const log = new Log('info', (level, _, { event, count, of } = { event: 'omitted' }) =>
    lines.push([level, event === 'omitted' ? [count, of] : event]),
  );
  reportSlow(plane, () => ({}) as MetadataState, log);
  const about = { operation: 'get', result: 'ok', worker: 0, shard: 0, ms: 1 } as const;
  plane.onSlow?.({ slow: false, ...about }, 0);
  plane.onSlow?.({ slow: true, ...about }, 2);
  plane.onSlow?.({ slow: false, ...about }, 3);
  t.deepEqual(lines, [
    ['info', 'request'],
    ['warn', [2, 'slow-request']],
    ['warn', 'slow-request'],
    ['info', [3, 'request']],
    ['info', 'request'],
  ]);
});
