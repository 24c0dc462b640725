/**
 * Hello and welcome: how the two ends of a new connection agree on a version, and how one of them refuses. Pure;
 * outgoing.ts sends the one, incoming.ts the other. Whether a token or a peer is accepted is not decided here.
 */
import { FarkvError, type ErrorCode } from '../core/errors.js';
import {
  MESSAGE_MAX,
  PEER_FRAME_LIMITS,
  printable,
  PROTOCOL_MAX,
  PROTOCOL_MIN,
  SERVER_FRAME_LIMITS,
  type Frame,
  type FrameLimits,
  type Hello,
  type Role,
  type Welcome,
} from '../core/protocol/index.js';

/** A hello without what is the same in all. */
export type HelloFields = Omit<Hello, 't' | 'magic' | 'versions'>;
export type Accepted = Extract<Welcome, { ok: true }>;
/** A welcome without what is the same in all. */
export type WelcomeFields = Omit<Accepted, 't' | 'ok' | 'version'>;

export function makeHello(fields: HelloFields): Hello {
  return { t: 'hello', magic: 'farkv', versions: [PROTOCOL_MIN, PROTOCOL_MAX], ...fields };
}

/** The latest version that both ends speak. Throws ERR_PROTOCOL_VERSION. */
export function commonVersion({ versions: [least, most] }: Hello): number {
  const version = Math.min(most, PROTOCOL_MAX);
  if (version < Math.max(least, PROTOCOL_MIN)) {
    const text = `this server speaks protocol ${PROTOCOL_MIN} to ${PROTOCOL_MAX}, the caller ${least} to ${most}`;
    throw new FarkvError('ERR_PROTOCOL_VERSION', text);
  }
  return version;
}

export function makeRefusal(code: ErrorCode, message: string): Welcome {
  return {
    t: 'welcome',
    ok: false,
    code,
    message: printable(message, MESSAGE_MAX),
    versions: [PROTOCOL_MIN, PROTOCOL_MAX],
  };
}

/** The answer to a hello. Throws the reason when it is no or makes no sense. */
export function readWelcome(frame: Frame, address: string): Accepted {
  if (frame.t !== 'welcome') throw new FarkvError('ERR_PROTOCOL', `${address} did not answer with a welcome`);
  if (!frame.ok) throw new FarkvError(frame.code, frame.message);
  if (frame.version < PROTOCOL_MIN || frame.version > PROTOCOL_MAX) {
    throw new FarkvError('ERR_PROTOCOL_VERSION', `the server chose version ${frame.version}, which was not offered`);
  }
  return frame;
}

/** What a dialer in this role takes from the other end. */
export function limitsOf(role: Role): FrameLimits {
  return role === 'peer' ? PEER_FRAME_LIMITS : SERVER_FRAME_LIMITS;
}
