/**
 * Logins: how often a source address may be wrong. The first FREE wrong tokens of an address cost nothing; after that
 * the address waits after each wrong one, twice as long each time, and a token that it shows meanwhile is not looked at.
 * Addresses that were never wrong wait for nobody. Operators and clients of an address are counted apart, so that a
 * program with an old token does not keep an operator of its host out. A token that the address has been let in with is
 * looked at whatever others of that address have shown: servers that share one with an attacker come back.
 *
 * Invariant: at most ADDRESSES are remembered, the ones that were wrong last; and as many tokens, by digest, the ones
 * that were right last.
 */
import { createHash } from 'node:crypto';
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

const digestOf = (who: string, token: string): string =>
  createHash('sha256').update(`${who} ${token}`, 'utf8').digest('base64');

function keepNewest(of: { readonly size: number; keys(): Iterable<string>; delete(key: string): boolean }): void {
  if (of.size <= ADDRESSES) return;
  for (const oldest of of.keys()) {
    of.delete(oldest);
    break;
  }
}

interface Wrong {
  times: number;
  /** When it may show a token again. */
  until: number;
  last: number;
}

export class Logins {
  readonly #now: () => number;
  readonly #wrong = new Map<string, Wrong>();
  readonly #right = new Set<string>();
  /** Wrong tokens, and tokens that were not looked at. */
  failed = 0;
  delayed = 0;

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** Milliseconds until this token of this address is looked at; 0: now. */
  waitMs(who: string, token?: string): number {
    const wrong = this.#wrong.get(who);
    if (wrong === undefined || (token !== undefined && this.#right.has(digestOf(who, token)))) return 0;
    const now = this.#now();
    if (now - wrong.last >= FORGET_MS) {
      this.#wrong.delete(who);
      return 0;
    }
    const wait = Math.max(0, Math.ceil(wrong.until - now));
    if (wait > 0) this.delayed += 1;
    return wait;
  }

  /** A right token was shown. */
  right(who: string, token: string): void {
    const digest = digestOf(who, token);
    this.#right.delete(digest);
    this.#right.add(digest);
    keepNewest(this.#right);
  }

  /** A wrong token was shown. */
  wrong(who: string, token?: string): void {
    if (token !== undefined) this.#right.delete(digestOf(who, token));
    const now = this.#now();
    this.failed += 1;
    const before = this.#wrong.get(who)?.times ?? 0;
    const times = before + 1;
    const wait = times < FREE ? 0 : Math.min(MOST_MS, FIRST_MS * 2 ** Math.min(20, times - FREE));
    this.#wrong.delete(who);
    this.#wrong.set(who, { times, until: now + wait, last: now });
    keepNewest(this.#wrong);
  }
}

const WANTED: Readonly<Record<Role, string>> = { client: 'a client', admin: 'an operator', peer: 'a server' };

/**
 * Who has come. Throws ERR_UNAUTHORIZED when that is nobody, ERR_BUSY when the address was wrong too often. A hello
 * without a token is no guess, nor is one that no token could open: both are answered at once. A certificate needs no
 * token; whoever shows both must be the same with both.
 */
export function identify(
  logins: Logins,
  credentials: Credentials,
  { source, certificate }: Pick<Guest, 'source' | 'certificate'>,
  { role, token }: Hello,
): Identity {
  const certified = credentials.certified(role, certificate);
  if (certified !== undefined && token === undefined) return certified;
  const who = `${source} ${role}`;
  const missing = credentials.missing(role);
  if (missing !== undefined) throw new FarkvError('ERR_UNAUTHORIZED', missing);
  const waitMs = token === undefined ? 0 : logins.waitMs(who, token);
  if (waitMs > 0) {
    throw new FarkvError('ERR_BUSY', `too many wrong tokens from this address: the next is looked at in ${waitMs} ms`);
  }
  const identity = credentials.identify(role, token);
  if (identity === undefined) {
    if (token !== undefined) logins.wrong(who, token);
    const text =
      token === undefined
        ? `this server wants a token of ${WANTED[role]}, or a certificate`
        : `the token is not one of ${WANTED[role]}`;
    throw new FarkvError('ERR_UNAUTHORIZED', text);
  }
  if (token !== undefined) logins.right(who, token);
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
