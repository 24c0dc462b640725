/**
 * Logins: what wrong tokens cost. Every token is compared, and a right one is let in at once, whatever others of its
 * address have shown: honest programs may share one with somebody who guesses. The first FREE wrong tokens of an address
 * are told to be wrong; after that it is told to wait, twice as long each time. Operators and clients of an address are
 * counted apart. So guesses are bounded by connections (bounds.ts) and by the length of tokens, not by these waits,
 * which keep programs with an old token from asking without end.
 *
 * Invariant: at most ADDRESSES are remembered, the ones that were wrong last.
 */
import { FarkvError } from '../../core/errors.js';
import type { Hello, Role } from '../../core/protocol/index.js';
import type { Credentials, Identity } from './auth.js';
import type { Guest } from './listener.js';

const FREE = 10;
const FIRST_MS = 100;
const MOST_MS = 30_000;
/** An address that was not wrong for so long begins anew. */
const FORGET_MS = 120_000;
const ADDRESSES = 4096;

interface Wrong {
  times: number;
  /** Until then a wrong token is told to wait. */
  until: number;
  last: number;
}

export class Logins {
  readonly #now: () => number;
  readonly #wrong = new Map<string, Wrong>();
  /** Wrong tokens, and those of them that were told to wait. */
  failed = 0;
  delayed = 0;

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** A wrong token was shown. Milliseconds for which its address was to wait before it; 0: it was not. */
  wrong(who: string): number {
    const now = this.#now();
    this.failed += 1;
    const known = this.#wrong.get(who);
    const before = known === undefined || now - known.last >= FORGET_MS ? undefined : known;
    const left = Math.max(0, Math.ceil((before?.until ?? 0) - now));
    if (left > 0) {
      this.delayed += 1;
      return left;
    }
    const times = (before?.times ?? 0) + 1;
    const wait = times < FREE ? 0 : Math.min(MOST_MS, FIRST_MS * 2 ** Math.min(20, times - FREE));
    this.#wrong.delete(who);
    this.#wrong.set(who, { times, until: now + wait, last: now });
    if (this.#wrong.size <= ADDRESSES) return 0;
    for (const oldest of this.#wrong.keys()) {
      this.#wrong.delete(oldest);
      break;
    }
    return 0;
  }
}

const WANTED: Readonly<Record<Role, string>> = {
  client: 'a client',
  admin: 'an operator or a monitor',
  peer: 'a server',
};

/**
 * Who has come. Throws ERR_UNAUTHORIZED when that is nobody, ERR_BUSY when the address was wrong too often. A hello
 * without a token is no guess, nor is one that no token could open. A certificate needs no token; whoever shows both
 * must be the same with both. Where the server has no token of that role, a good certificate alone counts: servers move
 * from a common token to certificates one after the other, and those that still have the token show both.
 */
export function identify(
  logins: Logins,
  credentials: Credentials,
  { source, certificate }: Pick<Guest, 'source' | 'certificate'>,
  { role, token }: Hello,
): Identity {
  const certified = credentials.certified(role, certificate);
  if (certified !== undefined && (token === undefined || !credentials.hasTokens(role))) return certified;
  const missing = credentials.missing(role);
  if (missing !== undefined) throw new FarkvError('ERR_UNAUTHORIZED', missing);
  const identity = credentials.identify(role, token);
  if (identity === undefined) {
    const waitMs = token === undefined ? 0 : logins.wrong(`${source} ${role}`);
    if (waitMs > 0)
      throw new FarkvError(
        'ERR_BUSY',
        `too many wrong tokens from this address, and this is none that opens anything: wait for ${waitMs} ms`,
      );
    const text =
      token === undefined
        ? `this server wants a token of ${WANTED[role]}, or a certificate`
        : `the token is not one of ${WANTED[role]}`;
    throw new FarkvError('ERR_UNAUTHORIZED', text);
  }
  if (certified === undefined) return identity;
  if (certified.access !== identity.access || certified.tenant !== identity.tenant) {
    throw new FarkvError(
      'ERR_UNAUTHORIZED',
      `the certificate is one of a ${nameOf(certified)}, the token one of a ${nameOf(identity)}: show one of them, or two that agree`,
    );
  }
  return { ...certified, lapsed: (wallMs) => certified.lapsed?.(wallMs) ?? identity.lapsed?.(wallMs) };
}

const nameOf = ({ access, tenant }: Identity): string =>
  tenant === undefined ? access : `${access} of tenant ${tenant}`;
