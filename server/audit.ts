/**
 * Audit: log lines that say who did what, and with what result. Who: the role, the name in the certificate or the name of
 * the token's file, and the address. What: calls that change the cluster, joins, failed logins, connections that ended
 * with their credential.
 *
 * No secret gets into a line: of a call's arguments those that operator-calls.ts names, of a token and of a directory's
 * number the first digits of the hash.
 * Bounded: failures that strangers and joiners can cause are written 20 times in 10 s of each kind, then counted. What
 * succeeded is always written: calls of operators, which are slowed down for that (AUDITED_CALLS), and joins. A join takes
 * a server in, or comes from a server that is in already: with the number of its directory it gets `ok` without a join
 * token, once per connection.
 */
import { createHash } from 'node:crypto';
import type { ErrorCode } from '../core/errors.js';
import { printable, type Role } from '../core/protocol/index.js';
import type { Access } from './control/auth.js';
import type { WatchOptions } from '../net/watched-files.js';
import { codeOf, describeError, RateLimitedLog, type Log, type LogFields } from './log.js';
import { CHANGING_CALLS, OPERATOR_CALLS, type ChangingCall } from './operator-calls.js';

export interface Who {
  readonly role: Access;
  readonly name: string;
  readonly address: string;
}

/** Digits of the hash of a join token or of a directory's number: they tell these apart. */
const HASH_DIGITS = 8;
const TEXT_MAX = 300;
const REFUSED = 'connection-refused';

/** Of operators those that change something, and a server that joins. */
type AuditedCall = ChangingCall | 'join';

/** The arguments that are written. */
const loggedOf = (method: AuditedCall): readonly string[] => (method === 'join' ? [] : OPERATOR_CALLS[method].logged);

/** Arguments that have another name in a line, where a field of every line has theirs. */
const FIELDS: Readonly<Record<string, string>> = { level: 'replicationLevel' };

const digitsOf = (secret: string): string =>
  createHash('sha256').update(secret, 'utf8').digest('hex').slice(0, HASH_DIGITS);

/** Whether a call changes something, so that the audit has a line of it. */
export function isAudited(method: string): method is AuditedCall {
  return method === 'join' || CHANGING_CALLS.some((name) => name === method);
}

/** Of a call that has ended; undefined when it changes nothing, whoever makes it. Arguments may be anything. */
export function auditCall(
  who: Who | undefined,
  method: string,
  args: unknown,
  result: ErrorCode | 'ok',
  server?: string,
): LogFields | undefined {
  if (who === undefined || !isAudited(method)) return undefined;
  const given = typeof args === 'object' && args !== null ? (args as Readonly<Record<string, unknown>>) : {};
  const named: [string, string | number | boolean][] = [];
  for (const name of loggedOf(method)) {
    const value = given[name];
    const field = FIELDS[name] ?? name;
    if (typeof value === 'number' || typeof value === 'boolean') named.push([field, value]);
    else if (typeof value === 'string') named.push([field, printable(value, TEXT_MAX)]);
  }
  const { hash, token, instance } = given;
  return {
    event: method,
    role: who.role,
    name: who.name,
    address: who.address,
    ...(server === undefined ? {} : { server: printable(server, TEXT_MAX) }),
    ...Object.fromEntries(named),
    ...(method === 'join-token-add' && typeof hash === 'string'
      ? { joinToken: printable(hash.slice(0, HASH_DIGITS), TEXT_MAX) }
      : {}),
    // Whoever knows a directory's number can say that it is that server.
    ...(method === 'join' && typeof instance === 'string' ? { directory: digitsOf(instance) } : {}),
    ...(method === 'join' && typeof token === 'string' ? { joinToken: digitsOf(token) } : {}),
    result,
  };
}

/** Of a connection that was refused. Only where that was for who it is, it is of the audit. */
export function loginFailed(code: ErrorCode, address: string, as: Role | undefined, reason: string): LogFields {
  const who = { address, ...(as === undefined ? {} : { as }) };
  if (code !== 'ERR_UNAUTHORIZED') return { event: REFUSED, ...who, code };
  return { event: 'login-failed', ...who, reason: printable(reason, TEXT_MAX) };
}

/** Of a connection that was made with what is good no more. */
export function credentialEnded({ role, name, address }: Who, reason: string): LogFields {
  return { event: 'credential-ended', role, name, address, reason };
}

/** What becomes of files with credentials while the server runs. */
export function watchCredentials(log: Log): (file: string) => WatchOptions {
  return (file) => ({
    changed: () => log.audit({ event: 'credentials-changed', file }),
    unusable: (error) => {
      const why = describeError(error);
      // What OpenSSL says names no file.
      const named = why.includes(file) ? why : `${file}: ${why}`;
      log.warn(`changed credentials are not used yet: ${named}`, {
        ...{ event: 'credentials-unusable', file },
        ...codeOf(error),
      });
    },
  });
}

export interface AuditLines {
  readonly say: (text: string, fields: LogFields) => void;
}

/**
 * Lines that others cause: they are of the audit, but for `connection-refused`, which is of level info. Lines of one kind
 * do not take the places of another's, and what succeeded is never left out.
 */
export function limitedAudit(log: Log): AuditLines {
  const kinds = new Map<string, RateLimitedLog>();
  const linesOf = (kind: string): RateLimitedLog =>
    new RateLimitedLog((text, fields) => {
      if (kind === REFUSED) log.info(text, fields);
      else log.audit(fields);
    });
  return {
    say: (text, fields) => {
      if (fields.result === 'ok') {
        log.audit(fields);
        return;
      }
      // Events are those that this file names: there are few.
      const kind = fields.event;
      const lines = kinds.get(kind) ?? linesOf(kind);
      kinds.set(kind, lines);
      lines.say(text, fields);
    },
  };
}
