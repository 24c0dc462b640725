/** Tokens: compared so that neither the time taken nor the length tells anything about the right one. */
import { createHash, timingSafeEqual } from 'node:crypto';

function digest(token: string): Buffer {
  return createHash('sha256').update(token, 'utf8').digest();
}

export class TokenCheck {
  readonly #digest: Buffer | undefined;

  /** Without a token everybody is let in: a server that can be reached from elsewhere does not start like that (config/load.ts). */
  constructor(token: string | undefined) {
    this.#digest = token === undefined ? undefined : digest(token);
  }

  accepts(shown: string | undefined): boolean {
    if (this.#digest === undefined) return true;
    return timingSafeEqual(this.#digest, digest(shown ?? '')) && shown !== undefined;
  }
}

/** Which trust domain a client's token opens. */
export class ClientTokens {
  readonly #default: TokenCheck;
  readonly #named: readonly { readonly name: string; readonly check: TokenCheck }[];

  constructor(token: string | undefined, domains: readonly { readonly name: string; readonly token: string }[] = []) {
    this.#default = new TokenCheck(token);
    this.#named = domains.map((d) => ({ name: d.name, check: new TokenCheck(d.token) }));
  }

  /** `name` is undefined for the default domain; undefined: the token opens none. All are compared, whichever is the right one. */
  domainOf(shown: string | undefined): { readonly name: string | undefined } | undefined {
    const [named] = this.#named.filter(({ check }) => check.accepts(shown));
    const open = this.#default.accepts(shown);
    return named !== undefined ? { name: named.name } : open ? { name: undefined } : undefined;
  }
}
