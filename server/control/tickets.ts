/**
 * Tickets: with what an authenticated client comes into data planes (native/wire/wire.h). Any server makes them, for all
 * share the secret that is in the metadata. A ticket is good for TICKET_MS and is renewed at half of it, so a client
 * that loses its server has time to find another.
 *
 * Client ids are given by servers. A client that comes back shows its last ticket with its key, which proves that the id
 * is its own; so nobody else reaches what owners remember of its changes. That a ticket has expired does not matter
 * here: it opens nothing, it only says who the client is.
 */
import { randomBytes } from 'node:crypto';
import { fromHex64, toHex64 } from '../../core/hex64.js';
import type { MetadataState } from '../../core/metadata/state.js';
import { REVOKED_AHEAD_MS, revokedBeforeMs, ticketRules } from '../../core/metadata/tickets.js';
import type { Addon } from '../../native/addon.js';
import type { DataPlaneAccess, TicketSecret } from '../../native/data-plane.js';

export const TICKET_MS = 20 * 60_000;
export const RENEW_MS = TICKET_MS / 2;

/** FKV_TICKET_READ, FKV_TICKET_WRITE */
const READ = 1;
const WRITE = 2;

export type TicketCodes = Pick<Addon, 'makeTicket' | 'openTicket'>;

/** What its owner may do. Owners refuse changes under a ticket that does not write. */
export interface TicketFor {
  readonly client: bigint;
  readonly tenant: number;
  readonly writes: boolean;
}

/**
 * After an exchange, tickets are made with the secret before for so long: an owner that hears of it a little later than
 * the others refuses nobody. One that seems to come later than clocks differ was made by a clock that was wrong.
 */
export const SETTLE_MS = 5000;

/** The present secret, then the one before it, if there is one. */
export function ticketSecrets(state: MetadataState): readonly [TicketSecret, ...TicketSecret[]] {
  const { number, previous } = ticketRules(state);
  const present = { number, secret: Buffer.from(state.ticketSecret, 'hex') };
  return previous === undefined ? [present] : [present, { number: number - 1, secret: Buffer.from(previous, 'hex') }];
}

/** What data planes are told of it. */
export function accessOf(state: MetadataState): DataPlaneAccess {
  return {
    secrets: ticketSecrets(state),
    revoked: ticketRules(state).revoked.map(({ client, tenant = 0, beforeMs }) => ({
      client: client === undefined ? 0n : fromHex64(client),
      tenant,
      beforeMs,
    })),
  };
}

export function issueTicket(
  codes: TicketCodes,
  state: MetadataState,
  { client, tenant, writes }: TicketFor,
  nowMs: number,
): Uint8Array {
  const [present, previous = present] = ticketSecrets(state);
  const { rotatedMs } = ticketRules(state);
  // A revocation by a server whose clock is ahead of this one's is of earlier tickets, not of this one.
  const issuedMs = Math.max(nowMs, revokedBeforeMs(state, idOf(client), tenant));
  const settles = nowMs < rotatedMs + SETTLE_MS && nowMs >= rotatedMs - REVOKED_AHEAD_MS;
  return codes.makeTicket(settles ? previous : present, {
    client,
    issuedMs,
    expiresMs: issuedMs + TICKET_MS,
    tenant,
    flags: writes ? READ | WRITE : READ,
  });
}

/** The client that this ticket, shown with its key, was made for; else a new one. */
export function clientOf(
  codes: TicketCodes,
  state: MetadataState,
  shown: Uint8Array | undefined,
  tenant: number,
): bigint {
  const ticket = shown && codes.openTicket(ticketSecrets(state), shown);
  const known =
    // mutation: access/id-of-another-tenant
    ticket?.tenant === tenant && ticket.issuedMs >= revokedBeforeMs(state, idOf(ticket.client), tenant)
      ? ticket.client
      : undefined;
  return known ?? newClient();
}

/** As people write it. */
export function idOf(client: bigint): string {
  return toHex64(client);
}

/** 0 names no client. */
function newClient(): bigint {
  const client = randomBytes(8).readBigUInt64LE();
  return client === 0n ? newClient() : client;
}
