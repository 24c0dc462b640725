import test from 'ava';
import { EventEmitter, once } from 'node:events';
import { Log } from '../log.js';
import { ThreadWatch } from './thread-watch.js';

test('a thread counts as stalled after four looks without an answer, and no more once it answers', async (t) => {
  const lines: string[] = [];
  const events = new EventEmitter();
  const log = new Log('info', (level, text) => {
    lines.push(`${level} ${text}`);
    events.emit('any');
  });
  let asked = 0;
  let answers = true;
  const watch: ThreadWatch = new ThreadWatch({
    lookMs: 5,
    log,
    ask: () => {
      asked += 1;
      events.emit('any');
      if (answers) setImmediate(() => watch.answered());
    },
  });
  t.teardown(() => watch.close());
  while (asked < 6 && lines.length === 0) await once(events, 'any');
  t.deepEqual(lines, []);
  t.is(watch.stalledMs, undefined);
  answers = false;
  const before = asked;
  while (lines.length === 0) await once(events, 'any');
  t.is(asked, before + 1, 'it is asked once');
  t.is(watch.stalledMs, 20);
  watch.answered();
  t.is(watch.stalledMs, undefined);
  t.regex(lines.join(), /^warn .* has not answered for 20 ms.*,info .* answers again/);
});
