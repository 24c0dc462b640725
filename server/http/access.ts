/** Who may see what over HTTP: the token of a request, and whether its Host is a name of this server. */
import { isIP } from 'node:net';
import { formatHostPort, isLoopback, type HostPort } from '../config/units.js';

const BASIC = /^Basic +([A-Za-z0-9+/]+=*) *$/i;
const BEARER = /^Bearer +(\S+) *$/i;
const TOKEN_MAX = 1024;

/** `Authorization: Bearer TOKEN`; or Basic, whose password is the token, with any name. Undefined: none was shown. */
export function tokenIn(authorization: string | undefined): string | undefined {
  const bearer = BEARER.exec(authorization ?? '')?.[1];
  const basic = BASIC.exec(authorization ?? '')?.[1];
  const pair = basic === undefined ? undefined : Buffer.from(basic, 'base64').toString('utf8');
  const password = pair?.includes(':') === true ? pair.slice(pair.indexOf(':') + 1) : undefined;
  const token = bearer ?? password;
  return token === undefined || token === '' || token.length > TOKEN_MAX ? undefined : token;
}

/**
 * Whether a request that came to a loopback address was meant for one. A page of another host whose name leads to
 * 127.0.0.1 (DNS rebinding) sends its own name. Beyond loopback any name may be right.
 */
export function isOwnHost(header: string | undefined, local: string | undefined, listen: readonly HostPort[]): boolean {
  if (local === undefined || !isLoopback(local)) return true;
  if (header === undefined) return false;
  const host = /^(?:\[([^\]]+)\]|([^:]+))(?::\d{1,5})?$/.exec(header);
  const name = (host?.[1] ?? host?.[2] ?? '').toLowerCase();
  if (isLoopback(name)) return true;
  return listen.some((at) => isIP(at.host) === 0 && formatHostPort({ ...at, host: name }) === formatHostPort(at));
}
