/**
 * The calls of operators: the arguments of each, and which of them the audit writes down. One table, for the thread that
 * takes calls (checkOperatorCall), for the audit (audit.ts) and for whoever answers (admin-calls.ts, shard-reset.ts,
 * control/client-list.ts). Not for: what a call does. The thread of clients and operators loads it, so it imports checks
 * alone.
 */
import { FarkvError } from '../core/errors.js';
import { checkAddresses, memberId, policyShape, shardNumber } from '../core/metadata/check-state.js';
import { JOIN_TOKEN_TTL_MAX_MS } from '../core/metadata/join-tokens.js';
import type { ResetAsked } from '../core/metadata/shard-loss.js';
import type { Policy } from '../core/metadata/state.js';
import { boolean, hex256, hex64, maybe, record, text, uint, type Check } from '../core/protocol/check.js';
import type { Access, Caller } from './control/auth.js';
import { checkClientQuery } from './control/client-list.js';
import { checkStatusCall } from './status-call.js';

export interface MoveAsked {
  readonly shard: number;
  readonly to: string;
  /** Of the shard as it was seen: it is not moved if it has had another owner since. */
  readonly epoch?: number;
}
export interface Revoked {
  readonly client?: string;
  readonly tenant?: string;
}
export interface PolicyAsked extends Policy {
  readonly tenant?: string;
}
interface ResetCall extends ResetAsked {
  /** False: nothing is done, and the answer says what would be lost. */
  readonly acceptLoss: boolean;
}

interface CallSpec<T> {
  readonly check: Check<T>;
  /** The arguments that the audit writes down: no secret. Absent: the call changes nothing, and is not of the audit. */
  readonly logged?: readonly string[];
}

/** A call that changes something. */
const change = <T extends object>(check: Check<T>, ...logged: readonly (keyof T & string)[]) => ({ check, logged });

export const OPERATOR_CALLS = {
  'member-add': change(
    record<{ readonly id: string; readonly control: readonly string[] }>({ id: memberId, control: checkAddresses }),
    'id',
  ),
  'member-remove': change(record<{ readonly id: string }>({ id: memberId }), 'id'),
  drain: change(
    record<{ readonly id: string; readonly draining: boolean }>({ id: memberId, draining: boolean }),
    'id',
    'draining',
  ),
  'shard-move': change(record<MoveAsked>({ shard: shardNumber, to: memberId, epoch: maybe(uint()) }), 'shard', 'to'),
  'shard-reset': change(
    record<ResetCall>({ shard: shardNumber, from: maybe(memberId), acceptLoss: boolean }),
    'shard',
    'from',
    'acceptLoss',
  ),
  'shard-plan': { check: () => ({}) },
  'tickets-rotate': change(() => ({})),
  'tickets-revoke': change(record<Revoked>({ client: maybe(hex64), tenant: maybe(text(200)) }), 'client', 'tenant'),
  // Whoever makes the token sends its hash alone.
  'join-token-add': change(
    record<{ readonly hash: string; readonly ttlMs: number }>({ hash: hex256, ttlMs: uint(JOIN_TOKEN_TTL_MAX_MS) }),
    'ttlMs',
  ),
  clients: { check: checkClientQuery },
  'replication-set': change(
    record<PolicyAsked>({ ...policyShape, tenant: maybe(text(200)) }),
    'tenant',
    'level',
    'replicas',
    'minInSync',
    'onLoss',
  ),
} as const satisfies Readonly<Record<string, CallSpec<unknown>>>;

type Calls = typeof OPERATOR_CALLS;
export type OperatorCall = keyof Calls;
/** Those that change something. */
export type ChangingCall = {
  [N in OperatorCall]: Calls[N] extends { readonly logged: unknown } ? N : never;
}[OperatorCall];
export const CHANGING_CALLS = Object.entries<CallSpec<unknown>>(OPERATOR_CALLS).flatMap(([name, { logged }]) =>
  logged === undefined ? [] : [name as ChangingCall],
);

const isOperatorCall = (method: string): method is OperatorCall => Object.hasOwn(OPERATOR_CALLS, method);

/** Throws ERR_PROTOCOL for arguments that are none of this call's. */
export function argumentsOf<N extends OperatorCall>(method: N, args: unknown): ReturnType<Calls[N]['check']> {
  return OPERATOR_CALLS[method].check(args, method) as ReturnType<Calls[N]['check']>;
}

/**
 * The arguments of a call as they may go to the thread that answers it. Throws as noSuchCall says, and ERR_PROTOCOL for
 * arguments that are none.
 */
export function checkOperatorCall(access: Caller, method: string, args: unknown): unknown {
  if (method === 'status') return checkStatusCall(args, method);
  if (access !== 'operator' || !isOperatorCall(method)) throw noSuchCall(access, method);
  return argumentsOf(method, args);
}

/** Of a call that is not known, or not for this role. */
export function noSuchCall(access: Access, method: string): FarkvError {
  return access === 'monitor' && isOperatorCall(method)
    ? new FarkvError('ERR_UNAUTHORIZED', `${method} is for operators, and this token is one of a monitor`)
    : new FarkvError('ERR_UNSUPPORTED', `there is no call ${method.slice(0, 40)} for a ${access}`);
}
