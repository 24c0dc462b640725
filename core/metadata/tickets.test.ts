/** Which tickets the metadata calls good: secrets that follow each other, and revocations. */
import test from 'ava';
import { MetadataLog } from '../../test/support/metadata-log.js';
import type { Command } from './commands.js';
import { MetadataMachine } from './machine.js';
import { REVOCATIONS_MAX, REVOKED_AHEAD_MS, revokedBeforeMs, ticketRules } from './tickets.js';

const HOUR = 3_600_000;
const hex = (n: number): string => n.toString(16).padStart(16, '0');
const rotate = (number: number, atMs = 0): Command => ({
  t: 'tickets-rotate',
  number,
  secret: hex(number).repeat(2),
  atMs,
});

test('the secret before is kept, the one before that is not', (t) => {
  const log = MetadataLog.cluster(2, ['s1']);
  const first = log.state.ticketSecret;
  log.do(rotate(1, 5));
  t.is(log.state.ticketSecret, hex(1).repeat(2));
  t.deepEqual(log.state.tickets, { number: 1, previous: first, rotatedMs: 5, revoked: [] });
  log.do(rotate(2, 6));
  t.deepEqual(log.state.tickets, { number: 2, previous: hex(1).repeat(2), rotatedMs: 6, revoked: [] });
});

test('two that exchange the secret at once exchange it once', (t) => {
  const log = MetadataLog.cluster(2, ['s1']);
  log.do(rotate(1));
  const { state } = log;
  t.not(log.try({ ...rotate(1), secret: 'ff'.repeat(16) } as Command), 'ok');
  t.not(log.try(rotate(3)), 'ok');
  t.is(log.state, state);
});

test('a revocation is of one client or one tenant, and the latest counts', (t) => {
  const log = MetadataLog.cluster(2, ['s1']);
  log.do({ t: 'tickets-revoke', client: hex(7), atMs: 10 });
  log.do({ t: 'tickets-revoke', client: hex(7), atMs: 20 });
  log.do({ t: 'tickets-revoke', tenant: 0, atMs: 15 });
  t.is(ticketRules(log.state).revoked.length, 2);
  t.is(revokedBeforeMs(log.state, hex(7), 0), REVOKED_AHEAD_MS + 20);
  t.is(revokedBeforeMs(log.state, hex(7), 1), REVOKED_AHEAD_MS + 20);
  t.is(revokedBeforeMs(log.state, hex(8), 0), REVOKED_AHEAD_MS + 15);
  t.is(revokedBeforeMs(log.state, hex(8), 1), 0);
  for (const wrong of [{}, { client: hex(1), tenant: 0 }, { tenant: 1 }])
    t.not(log.try({ t: 'tickets-revoke', atMs: 1, ...wrong }), 'ok');
});

test('who is revoked again loses the tickets of the time between, whatever the clock of the second server says', (t) => {
  const log = MetadataLog.cluster(2, ['s1']);
  log.do({ t: 'tickets-revoke', client: hex(7), atMs: HOUR });
  const between = revokedBeforeMs(log.state, hex(7), 0);
  log.do({ t: 'tickets-revoke', client: hex(7), atMs: HOUR - 5000 });
  t.true(revokedBeforeMs(log.state, hex(7), 0) > between);
  t.is(ticketRules(log.state).revoked.length, 1);
});

test('revocations are kept for longer than tickets live, are bounded, and outlive an exchange', (t) => {
  const log = MetadataLog.cluster(2, ['s1']);
  for (let i = 0; i < REVOCATIONS_MAX; i++) log.do({ t: 'tickets-revoke', client: hex(i + 1), atMs: HOUR });
  t.not(log.try({ t: 'tickets-revoke', client: 'ff'.repeat(8), atMs: 2 * HOUR }), 'ok');
  log.do(rotate(1, 2 * HOUR));
  t.is(ticketRules(log.state).revoked.length, REVOCATIONS_MAX);
  log.do({ t: 'tickets-revoke', client: 'ff'.repeat(8), atMs: 4 * HOUR });
  t.deepEqual(ticketRules(log.state).revoked, [{ client: 'ff'.repeat(8), beforeMs: 4 * HOUR + REVOKED_AHEAD_MS }]);
});

test('a snapshot has them', (t) => {
  const log = MetadataLog.cluster(2, ['s1']);
  log.do(rotate(1, 5));
  log.do({ t: 'tickets-revoke', tenant: 0, atMs: 15 });
  const restored = new MetadataMachine();
  restored.restore(log.machine.snapshot());
  t.deepEqual(restored.state, log.state);
});
