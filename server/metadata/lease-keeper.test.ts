import test from 'ava';
import { FarkvError } from '../../core/errors.js';
import { Log } from '../log.js';
import { LeaseKeeper, NO_END } from './lease-keeper.js';

test('while its lease has no end an owner does not say that it knows a format in which shards are taken', async (t) => {
  const said: { readonly knows: number; readonly until: bigint }[] = [];
  let until = 0n;
  await new Promise<void>((resolve) => {
    const keeper: LeaseKeeper = new LeaseKeeper({
      request: { incarnation: '1f'.repeat(8), knows: 2 }, leaseMs: 10, endless: () => true, log: new Log('error', () => undefined),
      applied: () => Promise.resolve(), fence: () => Promise.resolve(), bootTimeNs: () => process.hrtime.bigint(),
      setGrantUntil: (ns) => (until = ns),
      ask: ({ knows }) => {
        said.push({ knows, until });
        // A leader that grants no leases; then one that does, whose first answer is lost.
        if (said.length === 1) return Promise.reject(new FarkvError('ERR_UNSUPPORTED', 'no such call'));
        if (said.length === 2) return Promise.reject(new FarkvError('ERR_TIMEOUT', 'lost'));
        if (said.length < 4) return Promise.resolve({ index: 1, leaseMs: 1000 });
        keeper.close();
        resolve();
        return Promise.reject(new FarkvError('ERR_CLOSED', 'the end'));
      },
    });
    keeper.start();
  });
  t.deepEqual(said.map((s) => s.knows), [2, 1, 1, 2]);
  t.deepEqual(said.map((s) => s.until === NO_END), [false, true, true, false]);
});
