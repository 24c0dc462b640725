/** Who a client is that comes back, and which tickets are made. */
import test from 'ava';
import type { MetadataState } from '../../core/metadata/state.js';
import type { Command } from '../../core/metadata/commands.js';
import { revokedBeforeMs } from '../../core/metadata/tickets.js';
import type { Frame, Hello } from '../../core/protocol/index.js';
import { addon } from '../../native/addon.js';
import type { TicketSecret } from '../../native/data-plane.js';
import { hello, opened, Raw, rig, SECRET, STATE, TENANTS } from '../../test/support/control-rig.js';
import { MetadataLog } from '../../test/support/metadata-log.js';
import { answerAdminCall, type AdminContext } from '../admin-calls.js';
import { LatestWall } from '../latest-wall.js';
import { idOf, issueTicket, ticketSecrets } from './tickets.js';

test('a client that shows its ticket keeps its id, and nobody else gets it', async (t) => {
  const { port, setState } = await rig(t);
  setState(TENANTS);
  const idOf = async (more: Partial<Hello>): Promise<string | undefined> => {
    const [welcome] = await new Raw(t, port).say(hello(more)).got(1);
    return welcome?.t === 'welcome' && welcome.ok ? welcome.clientId : undefined;
  };
  const ticket = (client: bigint, tenant = 0, secret = SECRET, issuedMs = Date.now()): Uint8Array =>
    addon.makeTicket(secret, { client, issuedMs, expiresMs: issuedMs + 1000, tenant, flags: 3 });
  t.is(await idOf({ ticket: ticket(0xffn) }), '00000000000000ff');
  t.is(await idOf({ ticket: ticket(0xffn, 0, SECRET, Date.now() - 86_400_000) }), '00000000000000ff', 'an old one');
  t.is(await idOf({ ticket: ticket(0xffn, 1), token: 'secret of a' }), '00000000000000ff');
  const forged = ticket(0xffn);
  forged[24] = (forged[24] ?? 0) ^ 1;
  const others = [
    ticket(0xffn, 0, { number: 0, secret: Buffer.alloc(16, 3) }),
    ticket(0xffn, 1),
    forged,
    ticket(0xffn).subarray(0, 24),
    new Uint8Array(40),
    new Uint8Array(0),
  ];
  for (const other of others) t.not(await idOf({ ticket: other }), '00000000000000ff');
  t.not(await idOf({ ticket: ticket(0xffn), token: 'secret of a' }), '00000000000000ff', 'of another tenant');
});

test('after another secret all get tickets of it, at first new clients too by the one before', async (t) => {
  const { port, setState } = await rig(t, { pace: { settleMs: 0, spreadMs: 1 } });
  const raw = new Raw(t, port).say(hello());
  await raw.got(2);
  const next: TicketSecret = { number: 1, secret: Buffer.alloc(16, 9) };
  const rotated = (rotatedMs: number): MetadataState => ({
    ...STATE,
    mapEpoch: 2,
    ticketSecret: '09'.repeat(16),
    tickets: { number: 1, previous: STATE.ticketSecret, rotatedMs, revoked: [] },
  });
  const shown = async (): Promise<readonly boolean[]> => {
    const [welcome] = await new Raw(t, port).say(hello()).got(1);
    const ticket = welcome?.t === 'welcome' && welcome.ok ? welcome.ticket : undefined;
    return [SECRET, next].map((secret) => addon.openTicket([secret], ticket ?? new Uint8Array()) !== undefined);
  };
  const isNew = (f: Frame): boolean =>
    'ticket' in f && addon.openTicket([next], f.ticket ?? new Uint8Array()) !== undefined;
  // Within a millisecond; no map comes sooner than 5 ms after the one before.
  for (let mapEpoch = 2; mapEpoch < 202 && !raw.frames.some(isNew); mapEpoch++) {
    setState({ ...rotated(Date.now() - 60_000), mapEpoch });
    await raw.until(() => raw.frames.some((f) => isNew(f) || (f.t === 'map' && f.map.mapEpoch === mapEpoch)));
  }
  t.true(raw.frames.some(isNew));
  t.deepEqual(await shown(), [false, true]);
  setState(rotated(Date.now() + 60_000));
  t.deepEqual(await shown(), [true, false], 'owners may not know the new one yet');
  setState(rotated(Date.now() + 86_400_000));
  t.deepEqual(await shown(), [false, true], 'exchanged by a clock that was wrong');
});

test('a client whose ticket is of a secret that is gone gets another at once', async (t) => {
  const { port, setState } = await rig(t, { pace: { settleMs: 3_600_000 } });
  const raw = new Raw(t, port).say(hello());
  await raw.got(2);
  const previous = '08'.repeat(16);
  const tickets = { number: 2, previous, rotatedMs: Date.now(), revoked: [] };
  for (const mapEpoch of [2, 3]) {
    setState({ ...STATE, mapEpoch, ticketSecret: '09'.repeat(16), tickets });
    await raw.until(() => raw.frames.some((f) => f.t === 'map' && f.map.mapEpoch === mapEpoch));
  }
  const good: TicketSecret = { number: 1, secret: Buffer.from(previous, 'hex') };
  t.true(raw.frames.some((f) => 'ticket' in f && addon.openTicket([good], f.ticket ?? new Uint8Array())));
});

test('a revocation is of the tickets that servers make before they hear of it or with a clock ahead, and of none later', (t) => {
  const log = MetadataLog.cluster(2, ['s1']);
  const client = 0xffn;
  const madeMs = (state: MetadataState, nowMs: number): number =>
    addon.openTicket(ticketSecrets(state), issueTicket(addon, state, { client, tenant: 0, writes: true }, nowMs))
      ?.issuedMs ?? NaN;
  const before = log.state;
  const atMs = Date.now();
  log.do({ t: 'tickets-revoke', client: idOf(client), atMs });
  const revokedMs = revokedBeforeMs(log.state, idOf(client), 0);
  for (const ahead of [0, 1, 5000, 59_000]) t.true(madeMs(before, atMs + ahead) < revokedMs, `${ahead} ms ahead`);
  for (const ahead of [-59_000, 0, 1, 59_000])
    t.true(madeMs(log.state, atMs + ahead) >= revokedMs, `${ahead} ms ahead`);
});

test('a revocation is of the tickets too that were made before the clock was set back', async (t) => {
  const log = MetadataLog.cluster(2, ['s1']);
  const wall = { ms: 1_700_000_000_000 };
  const latest = new LatestWall(() => wall.ms);
  const client = 0xffn;
  const issued = (): number =>
    addon.openTicket(
      ticketSecrets(log.state),
      issueTicket(addon, log.state, { client, tenant: 0, writes: true }, wall.ms),
    )?.issuedMs ?? NaN;
  wall.ms += 1_200_000;
  const looked = latest.ms();
  const before = issued();
  wall.ms -= 1_200_000;
  const context = {
    driver: { state: log.state },
    latestWallMs: () => latest.ms(),
    propose: (command: Command) => {
      log.do(command);
      return Promise.resolve({ ok: true });
    },
  };
  await answerAdminCall(context as unknown as AdminContext, 'tickets-revoke', { client: idOf(client) });
  t.is(before, looked);
  t.true(before < revokedBeforeMs(log.state, idOf(client), 0));
  t.true(issued() >= revokedBeforeMs(log.state, idOf(client), 0), 'and those of later are good');
});

/** A server whose clock has shown `latestWallMs`, with its log; and when a ticket of the client made now is dated. */
function revoker(latestWallMs: number) {
  const log = MetadataLog.cluster(2, ['s1']);
  const client = 0xffn;
  return {
    log,
    issued: (): number =>
      addon.openTicket(
        ticketSecrets(log.state),
        issueTicket(addon, log.state, { client, tenant: 0, writes: true }, Date.now()),
      )?.issuedMs ?? NaN,
    revokedMs: (): number => revokedBeforeMs(log.state, idOf(client), 0),
    revoke: async (whom: { readonly client: string } | { readonly tenant: string }): Promise<void> => {
      const propose: AdminContext['propose'] = (command) => {
        log.do(command);
        return Promise.resolve({ ok: true });
      };
      const context: Partial<AdminContext> = {
        driver: { state: log.state, leader: 1, leads: true },
        latestWallMs: () => latestWallMs,
        propose,
      };
      await answerAdminCall(context as AdminContext, 'tickets-revoke', whom);
    },
    client: { client: idOf(client) },
  };
}

test('who comes back after a revocation loses the next ticket to one of another kind too, by a clock that stood or is behind', async (t) => {
  for (const aheadMs of [3_600_000, -30_000]) {
    const { issued, revokedMs, revoke, client } = revoker(Date.now() + aheadMs);
    for (const whom of [{ tenant: '' }, client, { tenant: '' }, client]) {
      const before = issued();
      await revoke(whom);
      t.true(before < revokedMs(), `${aheadMs} ms ahead`);
      t.true(issued() >= revokedMs());
    }
  }
});

test('a revocation by a server whose clock was far ahead once undoes no other one whose tickets are still good', async (t) => {
  const { log, issued, revokedMs, revoke, client } = revoker(Date.now() + 86_400_000);
  const before = issued();
  log.do({ t: 'tickets-revoke', ...client, atMs: Date.now() });
  const revoked = revokedMs();
  t.true(before < revoked);
  await revoke({ client: '0'.repeat(15) + '1' });
  t.is(revokedMs(), revoked);
  await revoke({ client: '0'.repeat(15) + '2' });
  t.is(revokedMs(), revoked);
});

/** Whether it is sent away rather than the map of this epoch. */
async function leaves(raw: Raw, mapEpoch: number): Promise<boolean> {
  await raw.until(() => raw.closed || raw.frames.some((f) => f.t === 'map' && f.map.mapEpoch === mapEpoch));
  return raw.closed;
}

test('who is revoked is sent away, and comes back as another client', async (t) => {
  const { port, setState } = await rig(t);
  setState(TENANTS);
  const [mine, other] = [new Raw(t, port).say(hello()), new Raw(t, port).say(hello({ token: 'secret of a' }))];
  const [welcome] = await mine.got(2);
  await other.got(2);
  if (welcome?.t !== 'welcome' || !welcome.ok || welcome.ticket === undefined) return t.fail();
  const client = welcome.clientId ?? '';
  const revoked = { number: 0, rotatedMs: 0, revoked: [{ client, beforeMs: Date.now() + 1000 }] };
  setState({ ...TENANTS, mapEpoch: 2, tickets: revoked });
  t.true(await leaves(mine, 2));
  const [again] = await new Raw(t, port).say(hello({ ticket: welcome.ticket })).got(1);
  t.true(again?.t === 'welcome' && again.ok && again.clientId !== client);
  const ofTenant = { number: 0, rotatedMs: 0, revoked: [{ tenant: 1, beforeMs: Date.now() + 600_000 }] };
  t.false(other.closed);
  setState({ ...TENANTS, mapEpoch: 3, tickets: ofTenant });
  t.true(await leaves(other, 3));
  const [later] = await new Raw(t, port).say(hello({ token: 'secret of a' })).got(1);
  t.true((later && opened(later)?.issuedMs) === ofTenant.revoked[0]?.beforeMs, 'no ticket is made that is not good');
});

test('who is revoked gets no ticket on the way out that would be good', async (t) => {
  const { port, setState } = await rig(t, { pace: { renewMs: 1, lookMs: 1 } });
  const raw = new Raw(t, port).say(hello());
  await raw.got(3);
  const beforeMs = Date.now() + 60_000;
  const revoked = [{ tenant: 0, beforeMs }];
  setState({ ...STATE, mapEpoch: 2, tickets: { number: 0, rotatedMs: 0, revoked } });
  await raw.until(() => raw.closed);
  for (const frame of raw.frames) t.true((opened(frame)?.issuedMs ?? 0) < beforeMs);
});
