import test from 'ava';
import { loadSettings } from './config/load.js';
import { howToRebuild } from './rebuild.js';

const settings = (given: Record<string, string>) => loadSettings(given, { env: {}, dashes: true });
const known = (...ids: string[]) => ids.map((id, i) => ({ id, raftId: i + 1, addresses: [] }));
const PEERS = 's1=127.0.0.1:9400,s2=127.0.0.1:9401,s3=127.0.0.1:9402';

test('a server of several is rebuilt from the others, with a join token where it must show who it is', (t) => {
  const others =
    'Rebuild the member from the others: farkv member remove s2, then start it with an empty data directory, with --join instead of --peers; or put back a copy of its directory made since it last ran';
  t.is(howToRebuild(settings({ peers: PEERS, id: 's2' }), { joined: false, servers: undefined }), others);
  const tokens = { token: 'a', 'peer-token': 'b' };
  t.regex(
    howToRebuild(settings({ peers: PEERS, id: 's2', ...tokens }), { joined: false, servers: undefined }),
    /with --join instead of --peers, and --join-token-file with a new token of farkv join-token create; or/,
  );
});

test('a server that came to others which are gone since is not sent to them', (t) => {
  const last = { joined: true, servers: known('s2') };
  for (const given of [{ id: 's2' }, { id: 's2', join: '127.0.0.1:9400' }])
    t.regex(howToRebuild(settings(given), last), /^No other server has its log/);
});

test('a server that is alone is not sent to others; one that others came to, or that came to others, is', (t) => {
  const alone = settings({ id: 's1' });
  for (const servers of [undefined, known('s1')])
    t.is(
      howToRebuild(alone, { joined: false, servers }),
      'No other server has its log: put back a copy of its directory made since it last ran, or restore a farkv backup into a new cluster',
    );
  const others = /^Rebuild the member from the others: farkv member remove s1/;
  t.regex(howToRebuild(alone, { joined: false, servers: known('s1', 's4') }), others);
  t.regex(howToRebuild(alone, { joined: true, servers: undefined }), others);
  t.regex(howToRebuild(settings({ id: 's1', join: '127.0.0.1:9400' }), { joined: false, servers: undefined }), others);
});
