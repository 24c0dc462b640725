/** Lines about the life of shards: what they say to people, and what to programs. */
import test from 'ava';
import { FarkvError } from '../../core/errors.js';
import type { Shard } from '../../core/metadata/state.js';
import type { Note } from '../../core/shards/index.js';
import { formatLine, Log } from '../log.js';
import { MoveErrors } from './move-errors.js';
import { Notes } from './notes.js';

const SOURCE: Shard = { shard: 3, owner: 's1', worker: 0, epoch: 7, layoutEpoch: 1, buckets: 64, regions: [] };

/** The line of a note, as an object and as text. */
function lineOf(note: Note): { readonly json: unknown; readonly text: string } {
  const lines: { json: unknown; text: string }[] = [];
  const log = new Log('debug', (level, text, fields) => {
    const { time: _time, ...json } = JSON.parse(formatLine('json', new Date(0), level, text, fields)) as {
      time: string;
    };
    lines.push({ json, text: formatLine('text', new Date(0), level, text, fields) });
  });
  const notes = new Notes({
    memberId: 's2',
    moveErrors: new MoveErrors(() => 0),
    addressesOf: () => [],
    statsOf: () => undefined,
    log,
  });
  notes.write(note);
  return lines[0] ?? { json: undefined, text: '' };
}

test('a line of a shard or of its copies names its event, and has what the text says as fields', (t) => {
  t.deepEqual(lineOf({ of: 'copy in sync', shard: 3, member: 's1', inSync: 2 }).json, {
    level: 'info',
    event: 'copy-in-sync',
    shard: 3,
    server: 's1',
    inSync: 2,
    message: 'shard 3: the copy at s1 is in sync (2 are, with this one)',
  });
  t.deepEqual(lineOf({ of: 'taken', shard: 3, epoch: 8 }).json, {
    level: 'warn',
    event: 'shard-taken',
    shard: 3,
    epoch: 8,
    message: "shard 3 is no longer this server's in epoch 8",
  });
  t.like(lineOf({ of: 'copy leads', shard: 3, epoch: 8 }).json, {
    level: 'info',
    event: 'copy-leads',
    shard: 3,
    epoch: 8,
  });
  t.like(lineOf({ of: 'owner gone', shard: 3, epoch: 8 }).json, { event: 'owner-gone', shard: 3, epoch: 8 });
  t.like(lineOf({ of: 'copy late', shard: 3, member: 's1', inSync: 1, minInSync: 2 }).json, {
    event: 'copy-late',
    server: 's1',
    inSync: 1,
    minInSync: 2,
  });
});

test('an error has its code as a field, and the other server its name; the text is as without fields', (t) => {
  const error = new FarkvError('ERR_TIMEOUT', 'it did not answer');
  const { json, text } = lineOf({
    of: 'not copied',
    shard: 3,
    source: SOURCE,
    attempts: 2,
    most: 5,
    again: 100,
    full: false,
    error,
  });
  t.like(json, {
    event: 'shard-not-copied',
    shard: 3,
    from: 's1',
    attempts: 2,
    most: 5,
    retryMs: 100,
    full: false,
    code: 'ERR_TIMEOUT',
  });
  t.regex(text, /^1970-01-01T00:00:00.000Z warn shard 3 could not be copied from s1, which goes on to serve it; .*\n$/);
  t.like(
    lineOf({ of: 'copy failed', shard: 3, source: SOURCE, attempts: 1, again: undefined, full: true, error }).json,
    { event: 'copy-failed', from: 's1', full: true, code: 'ERR_TIMEOUT' },
  );
});
