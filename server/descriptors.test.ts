import test from 'ava';
import { attention } from './attention.js';
import { descriptorLimit, fewDescriptors, memoryDescriptors } from './descriptors.js';
import type { ClusterStatus } from './status.js';

const GIB = 2 ** 30;

test('the limit is the soft one of open files, and none where nothing is said', (t) => {
  t.is(
    descriptorLimit(
      () => 'Max processes 1 2\nMax open files            1024                 4096                 files\n',
    ),
    1024,
  );
  t.is(
    descriptorLimit(() => 'Max open files            unlimited            unlimited            files\n'),
    Infinity,
  );
  t.is(
    descriptorLimit(() => {
      throw new Error('no /proc');
    }),
    Infinity,
  );
});

test('a start is warned when memory may need more descriptors than there may be, with what to raise', (t) => {
  t.is(fewDescriptors(2 * GIB, 16, 20_000), undefined);
  t.is(fewDescriptors(1 << 20, 1, 1024), undefined);
  const few = fewDescriptors(64 * GIB, 16, 1024);
  t.like(few, { limit: 1024, needed: memoryDescriptors(64 * GIB, 16) });
  t.regex(
    few?.text ?? '',
    /may have 1024 file descriptors.*--memory 64\.0 GiB in 16 shards may need \d+ .*LimitNOFILE=/,
  );
  t.true(memoryDescriptors(64 * GIB, 16) > memoryDescriptors(32 * GIB, 16));
});

test('a server that missed descriptors needs a person', (t) => {
  const status = {
    leader: 's1',
    shards: [],
    members: [
      {
        id: 's1',
        state: 'up',
        role: 'voter',
        node: { group: {}, dataPlane: { descriptorsMissed: 3, workers: [], shards: [] } },
      },
    ],
    replication: [],
  } as unknown as ClusterStatus;
  t.true(attention(status).some((line) => /^s1 ran out of file descriptors.*LimitNOFILE=/.test(line)));
});
