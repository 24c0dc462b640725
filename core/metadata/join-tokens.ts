/**
 * Join tokens: what an operator gives a server that shall come to the cluster. A token is good for one join and for a
 * time; the metadata has its hash alone. The entry that takes the server in takes the token away: however often it is
 * shown, and to whichever leader, it takes in one server.
 */
import type { JoinTokenAdd, ServerAdd } from './commands.js';
import { refused, type Reduced } from './reduced.js';
import type { JoinToken, MetadataState } from './state.js';

export const JOIN_TOKENS_MAX = 64;
export const JOIN_TOKEN_TTL_MAX_MS = 7 * 86_400_000;

const valid = (tokens: readonly JoinToken[], atMs: number): readonly JoinToken[] =>
  tokens.filter((one) => atMs < one.expiresMs);

/** Clients see nothing of it: the map stays as it is. */
export function addJoinToken(state: MetadataState, c: JoinTokenAdd): Reduced {
  const others = valid(state.joinTokens ?? [], c.atMs);
  if (c.expiresMs <= c.atMs) return refused('ERR_CONFIG', 'a join token must be good for a time');
  if (others.length >= JOIN_TOKENS_MAX)
    return refused('ERR_BUSY', `${JOIN_TOKENS_MAX} join tokens have been made and not used: wait until one expires`);
  if (others.some((one) => one.hash === c.hash)) return refused('ERR_BUSY', 'this join token exists');
  return { ok: true, state: { ...state, joinTokens: [...others, { hash: c.hash, expiresMs: c.expiresMs }] } };
}

/** Whether this server knows of such a token; one that was made just now may not have come here yet. */
export function isKnown({ joinTokens = [] }: Pick<MetadataState, 'joinTokens'>, hash: string, atMs: number): boolean {
  return valid(joinTokens, atMs).some((one) => one.hash === hash);
}

/** The tokens that are left when this server has come; undefined when it showed one that is not good. */
export function tokensAfter(state: MetadataState, { token, atMs = 0 }: ServerAdd): readonly JoinToken[] | undefined {
  const all = state.joinTokens ?? [];
  if (token === undefined) return all;
  const left = valid(all, atMs); // mutation: access/join-token-expired
  // mutation: access/join-token-twice, access/join-token-unknown
  return left.some((one) => one.hash === token) ? left.filter((one) => one.hash !== token) : undefined;
}
