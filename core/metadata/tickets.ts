/**
 * Which tickets of clients are good (native/wire/wire.h): those made with the present secret or the one before it, unless
 * they were revoked. The leader exchanges the secret every day, operators when they want to; a ticket lives much shorter
 * than that, so clients have others long before theirs are of a secret that is gone.
 */
import type { TicketsRevoke, TicketsRotate } from './commands.js';
import { changed, refused, type Reduced } from './reduced.js';
import type { MetadataState, Revocation, TicketRules } from './state.js';

/** Longer than any ticket lives and clocks differ: what was revoked before then has expired. */
export const KEPT_MS = 2 * 3_600_000;
/**
 * A server that has not heard of a revocation yet, or whose clock is ahead, makes tickets that look later than it. So a
 * revocation is of what is made within this time too; servers that know of it date their tickets behind that.
 */
export const REVOKED_AHEAD_MS = 60_000;
/** DATAPLANE_REVOCATIONS_MAX */
export const REVOCATIONS_MAX = 1024;

const FIRST: TicketRules = { number: 0, rotatedMs: 0, revoked: [] };

export function ticketRules(state: MetadataState): TicketRules {
  return state.tickets ?? FIRST;
}

const kept = (revoked: readonly Revocation[], atMs: number): readonly Revocation[] =>
  revoked.filter((r) => r.beforeMs + KEPT_MS > atMs);

export function rotateTickets(state: MetadataState, c: TicketsRotate): Reduced {
  const { number, revoked } = ticketRules(state);
  if (c.number !== number + 1) return refused('ERR_BUSY', `the ticket secret has been exchanged ${number} times`);
  return changed(state, {
    ticketSecret: c.secret,
    tickets: { number: c.number, previous: state.ticketSecret, rotatedMs: c.atMs, revoked: kept(revoked, c.atMs) },
  });
}

export function revokeTickets(state: MetadataState, c: TicketsRevoke): Reduced {
  const rules = ticketRules(state);
  if ((c.client === undefined) === (c.tenant === undefined))
    return refused('ERR_CONFIG', 'the tickets of a client or of a tenant are revoked');
  if (c.tenant !== undefined && c.tenant > state.tenants.length)
    return refused('ERR_CONFIG', 'there is no such tenant');
  const isSame = (r: Revocation): boolean => r.client === c.client && r.tenant === c.tenant;
  const others = kept(rules.revoked, c.atMs).filter((r) => !isSame(r));
  if (others.length >= REVOCATIONS_MAX)
    return refused('ERR_BUSY', `${REVOCATIONS_MAX} revocations of the last two hours are kept: revoke the tenant`);
  const revocation: Revocation = {
    ...(c.client === undefined ? {} : { client: c.client }),
    ...(c.tenant === undefined ? {} : { tenant: c.tenant }),
    // Later than the one before, whatever the clocks say: tickets made since then are meant too.
    // mutation: access/late-revocation, access/second-revocation
    beforeMs: Math.max(c.atMs + REVOKED_AHEAD_MS, ...rules.revoked.filter(isSame).map((r) => r.beforeMs + 1)),
  };
  return changed(state, { tickets: { ...rules, revoked: [...others, revocation] } });
}

/** When the latest revocation was that is of tickets of this client. */
export function revokedBeforeMs(state: MetadataState, client: string, tenant: number): number {
  return ticketRules(state).revoked.reduce(
    (latest, r) =>
      r.client === client || (r.client === undefined && r.tenant === tenant) ? Math.max(latest, r.beforeMs) : latest,
    0,
  );
}
