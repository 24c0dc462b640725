/** A join token takes in one server, within its time. */
import test from 'ava';
import { MetadataLog } from '../../test/support/metadata-log.js';
import type { Command } from './commands.js';
import { JOIN_TOKENS_MAX } from './join-tokens.js';
import { MetadataMachine } from './machine.js';

const hash = (n: number): string => n.toString(16).padStart(64, '0');
const token = (n: number, atMs = 0, expiresMs = 1000): Command => ({
  t: 'join-token-add',
  hash: hash(n),
  atMs,
  expiresMs,
});
const comes = (n: number, shown?: number, atMs = 500): Command => ({
  t: 'server-add',
  id: `n${n}`,
  raftId: 1000 + n,
  instance: n.toString(16).padStart(16, '0'),
  control: ['127.0.0.1:1'],
  ...(shown === undefined ? {} : { token: hash(shown), atMs }),
});
const refusal = (log: MetadataLog, command: Command): string | undefined => log.try(command).split(':')[0];
const ids = (log: MetadataLog): string[] => log.state.servers.map((s) => s.id);

test('a token takes in one server, and no other afterwards', (t) => {
  const log = MetadataLog.cluster(2, ['s1']);
  log.do(token(1));
  log.do(token(2));
  const { mapEpoch } = log.state;
  log.do(comes(1, 1));
  t.deepEqual(log.state.joinTokens, [{ hash: hash(2), expiresMs: 1000 }]);
  t.is(refusal(log, comes(2, 1)), 'ERR_UNAUTHORIZED');
  t.deepEqual(ids(log), ['n1', 's1']);
  t.is(log.state.mapEpoch, mapEpoch + 1);
  log.do(comes(2, 2));
  t.deepEqual(log.state.joinTokens, []);
});

test('a join that is refused leaves its token, and one without a token needs none here', (t) => {
  const log = MetadataLog.cluster(2, ['s1']);
  log.do(token(1));
  log.do(comes(1));
  t.is(refusal(log, comes(1, 1)), 'ERR_BUSY');
  t.is(log.state.joinTokens?.length, 1);
});

test('a token that was never made, or has expired, takes in nobody', (t) => {
  const log = MetadataLog.cluster(2, ['s1']);
  t.is(refusal(log, comes(1, 1)), 'ERR_UNAUTHORIZED');
  log.do(token(1));
  t.is(refusal(log, comes(1, 7)), 'ERR_UNAUTHORIZED');
  t.is(refusal(log, comes(1, 1, 1000)), 'ERR_UNAUTHORIZED');
  t.deepEqual(ids(log), ['s1']);
  t.is(refusal(log, token(3, 10, 10)), 'ERR_CONFIG');
  t.is(refusal(log, token(1)), 'ERR_BUSY');
});

test('tokens are bounded, and those that expired make room', (t) => {
  const log = MetadataLog.cluster(2, ['s1']);
  for (let i = 0; i < JOIN_TOKENS_MAX; i++) log.do(token(i));
  t.is(refusal(log, token(JOIN_TOKENS_MAX)), 'ERR_BUSY');
  log.do(token(JOIN_TOKENS_MAX, 1000, 2000));
  t.deepEqual(log.state.joinTokens, [{ hash: hash(JOIN_TOKENS_MAX), expiresMs: 2000 }]);
});

test('a snapshot has them', (t) => {
  const log = MetadataLog.cluster(2, ['s1']);
  log.do(token(1));
  const restored = new MetadataMachine();
  restored.restore(log.machine.snapshot());
  t.deepEqual(restored.state, log.state);
});
