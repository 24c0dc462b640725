/** `farkv top` where its output is no terminal: one frame. */
import test from 'ava';
import { Cluster, farkv } from '../support/cluster.js';

test('without a terminal farkv top prints one frame and ends', async (t) => {
  const cluster = await Cluster.start(t, { shards: 3 });
  const { code, stdout } = await farkv(['top', '--connect', cluster.addresses.join(',')]);
  t.is(code, 0);
  t.regex(stdout, /leader s1, term \d+ {2}3 of 3 shards served/);
  t.regex(stdout, /^s1 +up, leader +held +3/m);
  t.regex(stdout, /every shard is as it should be\n$/);
  // eslint-disable-next-line no-control-regex
  t.notRegex(stdout, /\u001b/);
});
