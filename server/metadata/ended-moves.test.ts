import test from 'ava';
import { CopyLog } from '../../test/support/copy-log.js';
import { joinOf } from '../../test/support/metadata-log.js';
import { endedMoves } from './ended-moves.js';

test('a move that is over though its shard stayed is told, with what the metadata says of the reason', (t) => {
  const moving = (): [CopyLog, string, string] => {
    const log = new CopyLog({ level: 'cache', replicas: 1, onLoss: 'empty' });
    const [to = ''] = log.others;
    return [log.do({ t: 'shard-move', shard: 0, epoch: 1, to }), log.owner!, to];
  };
  const told = (end: (log: CopyLog, from: string, to: string) => unknown): string[] => {
    const [log, from, to] = moving();
    const before = log.state;
    t.deepEqual(endedMoves(before, log.state), []);
    end(log, from, to);
    return endedMoves(before, log.state).map((one) => {
      t.like(one, { shard: 0, from, to });
      return one.why.replace(to, 'TO').replace(from, 'FROM');
    });
  };
  const off = { t: 'shard-move', shard: 0, epoch: 1 } as const;
  t.regex(told((log, from) => log.do({ ...off, to: from }))[0]!, /^an operator called it off, TO does not answer, or/);
  t.deepEqual(
    told((log, from, to) => log.do({ t: 'server-drain', id: to, draining: true }, { ...off, to: from })),
    ['TO is being drained'],
  );
  t.deepEqual(
    told((log, _, to) => log.do(joinOf(to, 70, Number(to.slice(1))))),
    ['TO has started again, or left'],
  );
  t.deepEqual(
    told((log) => log.arrive(0, 60)),
    [],
  );
});
