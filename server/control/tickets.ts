/**
 * Tickets: what an authenticated client shows to data planes (native/wire/wire.h). Any server makes them, for all share
 * the secret that is in the metadata. A ticket is good for TICKET_MS and is renewed at half of it, so a client that
 * loses its server has time to find another.
 */
import type { MetadataState } from '../../core/metadata/state.js';

export const TICKET_MS = 20 * 60_000;
export const RENEW_MS = TICKET_MS / 2;
/** FKV_TICKET_READ, FKV_TICKET_WRITE */
const [READ, WRITE] = [1, 2];

/** What its owner may do. Owners refuse changes under a ticket that does not write. */
export interface TicketFor {
  readonly clientId: string;
  readonly tenant: number;
  readonly writes: boolean;
}

export type MakeTicket = (
  secret: Uint8Array,
  client: bigint,
  expiresMs: number,
  tenant: number,
  flags: number,
) => Uint8Array;

export function issueTicket(
  make: MakeTicket,
  state: MetadataState,
  { clientId, tenant, writes }: TicketFor,
  nowMs: number,
): Uint8Array {
  const secret = Buffer.from(state.ticketSecret, 'hex');
  return make(secret, BigInt(`0x${clientId}`), nowMs + TICKET_MS, tenant, writes ? READ | WRITE : READ);
}
