/** Tokens: compared so that neither the time taken nor the length tells anything about the right one. */
import { createHash, timingSafeEqual } from 'node:crypto';

function digest(token: string): Buffer {
  return createHash('sha256').update(token, 'utf8').digest();
}

export class TokenCheck {
  readonly #digest: Buffer | undefined;

  /**
   * Without a token everybody is let in: a server that can be reached from elsewhere does not start like that
   * (config/load.ts).
   */
  constructor(token: string | undefined) {
    this.#digest = token === undefined ? undefined : digest(token);
  }

  accepts(shown: string | undefined): boolean {
    if (this.#digest === undefined) return true;
    return timingSafeEqual(this.#digest, digest(shown ?? '')) && shown !== undefined;
  }
}

/** What a client's token opens. */
export interface OpenedDomain {
  /** Undefined: the default one. */
  readonly name?: string;
  /** Of its clients at this server; undefined: no bound but that of all connections. */
  readonly maxClients?: number;
}

/** Which tenant a client's token opens. */
export class ClientTokens {
  readonly #default: TokenCheck;
  readonly #named: readonly { readonly check: TokenCheck; readonly domain: OpenedDomain }[];

  constructor(token: string | undefined, domains: readonly (OpenedDomain & { readonly token: string })[] = []) {
    this.#default = new TokenCheck(token);
    this.#named = domains.map(({ token: own, ...domain }) => ({ check: new TokenCheck(own), domain }));
  }

  /** Undefined: none. All are compared, whichever is the right one. */
  domainOf(shown: string | undefined): OpenedDomain | undefined {
    const [named] = this.#named.filter(({ check }) => check.accepts(shown));
    const open = this.#default.accepts(shown);
    return named?.domain ?? (open ? {} : undefined);
  }
}
