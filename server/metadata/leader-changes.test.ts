import test from 'ava';
import { LeaderChanges } from './leader-changes.js';

test('each term with a leader counts once, also where the same server leads again', (t) => {
  const changes = new LeaderChanges();
  const seen = (leader: number, term: number): number => {
    changes.seen(leader, term);
    return changes.count;
  };
  t.is(seen(0, 1), 0);
  t.is(seen(1, 2), 1);
  t.is(seen(0, 2), 1, 'lost for a moment');
  t.is(seen(1, 2), 1, 'and found again');
  t.is(seen(0, 3), 1);
  t.is(seen(1, 4), 2, 'elected again');
  t.is(seen(2, 5), 3);
});
