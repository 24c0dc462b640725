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
