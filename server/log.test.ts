import test from 'ava';
import { FarkvError } from '../core/errors.js';
import { describeError, formatLine, Log, RateLimitedLog, type LogFields } from './log.js';

test('only what is at least as important as asked for is written', (t) => {
  const lines: string[] = [];
  const log = new Log('warn', (level, text) => lines.push(`${level} ${text}`));
  log.debug('a');
  log.info('b', { event: 'leader' });
  log.warn('c', { event: 'leader' });
  log.error('d', { event: 'leader' });
  t.deepEqual(lines, ['warn c', 'error d']);
});

test('who did what is written whatever level is asked for, as text or as an object', (t) => {
  const lines: string[] = [];
  const time = new Date(0);
  const written = (format: 'text' | 'json'): Log =>
    new Log('error', (level, text, fields) => lines.push(formatLine(format, time, level, text, fields)));
  const fields = { event: 'drain', role: 'operator', name: 'a b\n"', draining: true, result: 'ok' } as const;
  written('text').audit(fields);
  written('json').audit(fields);
  // The line's own fields are those of no caller.
  lines.push(formatLine('json', time, 'info', 'm', { event: 'stopping', level: 'error', time: 'never', message: 'm' }));
  written('json').error('an error\nof two lines', { event: 'shards-lost', shards: '1,2' });
  t.deepEqual(lines, [
    '1970-01-01T00:00:00.000Z info audit drain role=operator name="a b\\n\\"" draining=true result=ok\n',
    '{"time":"1970-01-01T00:00:00.000Z","level":"info","event":"drain","role":"operator","name":"a b\\n\\"","draining":true,"result":"ok"}\n',
    '{"time":"1970-01-01T00:00:00.000Z","level":"info","event":"stopping","message":"m"}\n',
    '{"time":"1970-01-01T00:00:00.000Z","level":"error","event":"shards-lost","shards":"1,2","message":"an error\\nof two lines"}\n',
  ]);
});

test('what others have written is visible, and makes no line of its own', (t) => {
  const evil = 'a\x1b[2J\x9b\u202e\n2026 error FORGED';
  const time = new Date(0);
  const text = formatLine('text', time, 'warn', evil, undefined);
  t.is(text, '1970-01-01T00:00:00.000Z warn a\\x1b[2J\\x9b\\u202e\\n2026 error FORGED\n');
  for (const line of [
    formatLine('json', time, 'warn', evil, undefined),
    formatLine('json', time, 'warn', '', { event: 'transport', message: evil }),
  ]) {
    t.regex(line, /^[\x20-\x7e]+\n$/);
    t.is((JSON.parse(line) as { readonly message: string }).message, evil);
  }
});

test('what may happen any number of times is written so often and then counted', (t) => {
  const lines: string[] = [];
  let now = 0;
  // The timer is late for ever.
  const limited = new RateLimitedLog((text) => lines.push(text), { nowMs: () => now, after: () => undefined });
  for (let i = 0; i < 100; i++) limited.say(`refused ${i}`, { event: 'login-failed' });
  t.is(lines.length, 20);
  now = 10_000;
  limited.say('refused again', { event: 'login-failed' });
  t.deepEqual(lines.slice(20), ['(80 more like that were not written)', 'refused again']);
});

test('what was left out is counted when the time of the limit ends, also if no other line comes', (t) => {
  const lines: [string, LogFields | undefined][] = [];
  const timers: { readonly atMs: number; readonly run: () => void }[] = [];
  let now = 5;
  const limited = new RateLimitedLog((text, fields) => lines.push([text, fields]), {
    nowMs: () => now,
    after: (ms, run) => timers.push({ atMs: now + ms, run }),
  });
  const fields = { event: 'login-failed' } as const;
  for (let i = 0; i < 20; i++) limited.say('refused', fields);
  t.deepEqual(timers, [], 'nothing was left out yet');
  now = 100;
  for (let i = 0; i < 3; i++) limited.say('refused', fields);
  t.deepEqual(
    timers.map(({ atMs }) => atMs),
    [10_005],
  );
  now = 10_005;
  timers[0]?.run();
  t.deepEqual(lines.slice(20), [
    ['(3 more like that were not written)', { event: 'omitted', count: 3, of: 'login-failed' }],
  ]);
  // A timer that comes late takes nothing from the time that began meanwhile.
  for (let i = 0; i < 22; i++) limited.say('refused', fields);
  now = 30_000;
  for (let i = 0; i < 21; i++) limited.say('refused', fields);
  t.is(lines.length, 21 + 20 + 1 + 20);
  timers[1]?.run();
  t.is(lines.length, 21 + 20 + 1 + 20);
  timers[2]?.run();
  t.deepEqual(lines.at(-1), [
    '(1 more like that were not written)',
    { event: 'omitted', count: 1, of: 'login-failed' },
  ]);
});

test('an error is described with its causes, each said once', (t) => {
  const inner = new Error('no such file');
  t.is(
    describeError(
      new FarkvError('ERR_DATA_DIR', 'cannot start', { cause: new Error('no such file', { cause: inner }) }),
    ),
    'cannot start: no such file',
  );
  t.is(
    describeError(new Error('s2:7400: connect ECONNREFUSED', { cause: new Error('connect ECONNREFUSED') })),
    's2:7400: connect ECONNREFUSED',
  );
  t.is(describeError('text'), 'text');
});
