/**
 * checkFrame: from a decoded value to a Frame of messages.ts, or ERR_PROTOCOL. Unknown fields are dropped; an unknown
 * kind of frame is refused, because the version that both ends agreed on in the hello has none.
 */
import { ERROR_CODES, FarkvError, type ErrorCode } from '../errors.js';
import { checkMember, checkShard, memberId, MEMBERS_MAX, SHARDS_MAX } from '../metadata/check-state.js';
import {
  anything,
  boolean,
  bytes,
  fields,
  hex128,
  hex64,
  list,
  literal,
  maybe,
  oneOf,
  pattern,
  record,
  refuse,
  text,
  uint,
  type Check,
} from './check.js';
import type { Answer, Call, ClientMap, Frame, Hello, MapPush, Ping, Pong, RaftFrame, Welcome } from './messages.js';

const codes: ReadonlySet<unknown> = new Set(ERROR_CODES);

/** A code of a later version is an internal error to this one: the message still says what happened. */
export function knownCode(value: unknown): ErrorCode {
  return codes.has(value) ? (value as ErrorCode) : 'ERR_INTERNAL';
}

/** '' before the cluster has its id. */
const clusterId = pattern(/^([0-9a-f]{32})?$/, 'a cluster id');
const callId = uint();
const version = uint(65_535);
const ticket = bytes(256);
const code: Check<ErrorCode> = knownCode;
/** Characters of an error's message. */
export const MESSAGE_MAX = 2000;
const message = text(MESSAGE_MAX);

const versions: Check<readonly [number, number]> = (value, at) => {
  const [min, max] = list(version, 2)(value, at);
  if (min === undefined || max === undefined || min > max) refuse(at, 'a range of versions');
  return [min, max];
};

const checkHello = record<Hello>({
  t: literal('hello'),
  magic: literal('farkv'),
  versions,
  role: oneOf('client', 'admin', 'peer'),
  token: maybe(text(1024)),
  from: maybe(memberId),
  clusterId: maybe(clusterId),
  instance: maybe(hex64),
  voters: maybe(list(memberId, MEMBERS_MAX)),
  join: maybe(boolean),
  ticket: maybe(ticket),
});

const checkAccepted = record<Extract<Welcome, { ok: true }>>({
  t: literal('welcome'),
  ok: literal(true),
  version,
  serverId: memberId,
  clusterId,
  clientId: maybe(hex64),
  access: maybe(oneOf('writer', 'reader')),
  tenant: maybe(memberId),
  ticket: maybe(ticket),
  instance: maybe(hex64),
});
const checkRefused = record<Extract<Welcome, { ok: false }>>({
  t: literal('welcome'),
  ok: literal(false),
  code,
  message,
  versions,
});

const checkMap = record<ClientMap>({
  clusterId,
  mapEpoch: uint(),
  hashSeed: hex128,
  replicated: maybe(boolean),
  members: list(checkMember, MEMBERS_MAX),
  shards: list(checkShard, SHARDS_MAX),
});
const checkMapPush = record<MapPush>({
  t: literal('map'),
  map: checkMap,
  ticket: maybe(ticket),
  partial: maybe(boolean),
  more: maybe(boolean),
});

const checkCall = record<Call>({ t: literal('call'), id: callId, method: text(64), args: anything });
const checkResult = record<Extract<Answer, { ok: true }>>({
  t: literal('answer'),
  id: callId,
  ok: literal(true),
  result: anything,
});
const checkFailure = record<Extract<Answer, { ok: false }>>({
  t: literal('answer'),
  id: callId,
  ok: literal(false),
  code,
  message,
});
const checkRaft = record<RaftFrame>({ t: literal('raft'), message: anything });
const checkPing = record<Ping>({ t: literal('ping'), id: callId });
const checkPong = record<Pong>({ t: literal('pong'), id: callId });

/** Call arguments, answers' results and Raft messages stay unknown: each is checked where it is used. */
export function checkFrame(value: unknown): Frame {
  const { t, ok } = fields(value, 'frame');
  switch (t) {
    case 'hello':
      return checkHello(value, 'hello');
    case 'welcome':
      return ok === true ? checkAccepted(value, 'welcome') : checkRefused(value, 'welcome');
    case 'map':
      return checkMapPush(value, 'map');
    case 'call':
      return checkCall(value, 'call');
    case 'answer':
      return ok === true ? checkResult(value, 'answer') : checkFailure(value, 'answer');
    case 'raft':
      return checkRaft(value, 'raft');
    case 'ping':
      return checkPing(value, 'ping');
    case 'pong':
      return checkPong(value, 'pong');
    default:
      throw new FarkvError('ERR_PROTOCOL', 'malformed message: an unknown kind of frame');
  }
}
