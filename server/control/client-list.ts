/**
 * The clients that are connected to this server, as `farkv clients` shows them: to operators alone, a page at a time.
 * It is answered by the thread of clients and operators from what that thread has; Raft's thread is not asked.
 *
 * An entry has no secret: a client's id opens nothing (docs/security.md), and a token is named, not shown.
 */
import { boolean, hex64, list, maybe, oneOf, record, text, uint } from '../../core/protocol/check.js';
import type { ClientAccess } from '../../core/protocol/index.js';

/** A client that follows the map. */
export interface ClientEntry {
  /** Of the connection: later ones have larger numbers. */
  readonly number: number;
  /** 64 bits, hex: what `farkv revoke --client` takes. */
  readonly id: string;
  readonly access: ClientAccess;
  /** '': the default one. */
  readonly tenant: string;
  /** The name in its certificate, or its token's file. */
  readonly name: string;
  /** Host and port of its control connection. */
  readonly address: string;
  /** When it connected, milliseconds since 1970 by this server's clock. */
  readonly sinceMs: number;
  /** Whether its control connection has TLS. */
  readonly tls: boolean;
}

export interface ClientQuery {
  /** Those of this tenant; '' is the default one. Undefined: all. */
  readonly tenant?: string;
  /** Those with larger numbers: the last one of the page before. */
  readonly after?: number;
}

export interface ClientPage {
  readonly clients: readonly ClientEntry[];
  /** Of all pages. */
  readonly count: number;
  /** There are more, after this number. */
  readonly next?: number;
}

/** An answer has at most so many clients: about 64 KiB. */
export const CLIENTS_PAGE = 256;

export const checkClientQuery = record<ClientQuery>({ tenant: maybe(text(200)), after: maybe(uint()) });
export const checkClientPage = record<ClientPage>({
  clients: list(
    record<ClientEntry>({
      number: uint(),
      id: hex64,
      access: oneOf('writer', 'reader'),
      tenant: text(200),
      name: text(300),
      address: text(300),
      sinceMs: uint(),
      tls: boolean,
    }),
    CLIENTS_PAGE,
  ),
  count: uint(),
  next: maybe(uint()),
});

/** `all` in the order of their numbers. */
export function clientPage(all: Iterable<ClientEntry>, { tenant, after = 0 }: ClientQuery): ClientPage {
  const wanted = [...all].filter((one) => tenant === undefined || one.tenant === tenant);
  const rest = wanted.filter((one) => one.number > after);
  const clients = rest.slice(0, CLIENTS_PAGE);
  const last = clients.at(-1);
  return {
    clients,
    count: wanted.length,
    ...(last === undefined || rest.length === clients.length ? {} : { next: last.number }),
  };
}
