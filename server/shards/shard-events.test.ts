/** Lines about what happens to shards: what they say to people, and what to programs. */
import test from 'ava';
import { FarkvError } from '../../core/errors.js';
import type { MetadataState, Shard } from '../../core/metadata/state.js';
import type { ShardEvent } from '../../core/shards/index.js';
import { formatLine, Log } from '../log.js';
import { MoveErrors } from './move-errors.js';
import { ShardEvents } from './shard-events.js';

const SOURCE: Shard = { shard: 3, owner: 's1', worker: 0, epoch: 7, layoutEpoch: 1, buckets: 64, regions: [] };

/** The line of a note, as an object and as text. */
function lineOf(
  note: ShardEvent,
  moveErrors = new MoveErrors(() => 0),
): { readonly json: unknown; readonly text: string } {
  const lines: { json: unknown; text: string }[] = [];
  const log = new Log('debug', (level, text, fields) => {
    const { time: _time, ...json } = JSON.parse(formatLine('json', new Date(0), level, text, fields)) as {
      time: string;
    };
    lines.push({ json, text: formatLine('text', new Date(0), level, text, fields) });
  });
  const notes = new ShardEvents({
    memberId: 's2',
    moveErrors,
    movesHere: (shard) => shard === 4,
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
  const failed = { of: 'copy failed', source: SOURCE, attempts: 2, full: false, error } as const;
  const { json, text } = lineOf({ ...failed, shard: 3, again: 100 });
  t.like(json, {
    event: 'copy-failed',
    shard: 3,
    from: 's1',
    attempts: 2,
    retryMs: 100,
    full: false,
    code: 'ERR_TIMEOUT',
  });
  t.regex(
    text,
    /^1970-01-01T00:00:00.000Z warn shard 3: no copy could be made here of what s1 has; it is tried again .*\n$/,
  );
  t.like(
    lineOf({ of: 'copy failed', shard: 3, source: SOURCE, attempts: 1, again: undefined, full: true, error }).json,
    { event: 'copy-failed', from: 's1', full: true, code: 'ERR_TIMEOUT' },
  );
});

test('a copy that cannot be made for a move is in the way of that move, and of no other', (t) => {
  const errors = new MoveErrors(() => 0);
  const error = new FarkvError('ERR_TIMEOUT', 'it did not answer');
  const failed = { of: 'copy failed', source: { ...SOURCE, epoch: 1 }, attempts: 4, full: false, error } as const;
  lineOf({ ...failed, shard: 3, again: undefined }, errors);
  const { text } = lineOf({ ...failed, shard: 4, again: undefined }, errors);
  t.regex(text, /its move to here is called off, and s1 goes on to serve it/);
  const shards = Array.from({ length: 5 }, (_, shard) => ({ ...SOURCE, shard, epoch: 1 }));
  const listed = (): unknown[] => errors.list({ shards, moves: [] } as unknown as MetadataState);
  t.like(listed(), [{ shard: 4, from: 's1', to: 's2', attempts: 4, calledOff: true }]);
  lineOf({ of: 'copy begins', shard: 4, from: 's1', base: false }, errors);
  t.deepEqual(listed(), []);
});
