/**
 * What strangers, clients and other servers may cost the two ports of the control plane. `farkv server --help` and
 * docs/security.md name these numbers.
 */
import type { Share } from '../../net/turns.js';

/** Round trips of a login, with room for slow networks: a connection that takes longer for its next step gives way first. */
const WAIT_MS = 1000;
/** Connections without a login at the control port, from addresses without and with a login before. */
export const CONTROL_PLACES = { strangers: 1024, known: 1024, waitMs: WAIT_MS } as const;
/** Beyond --max-connections, for operators alone. */
export const OPERATOR_PLACES = 16;
/** TLS handshakes that begin per second at the control port. */
export const CONTROL_HANDSHAKES = {
  strangers: { perSecond: 250, burst: 32 },
  known: { perSecond: 500, burst: 64 },
  turn: 1,
} as const;
/** Source addresses with a login that are remembered. */
export const KNOWN_ADDRESSES = 4096;

/** Connections without a login at the peers' port, from other addresses and from those of the cluster's servers. */
export const PEER_PLACES = { strangers: 64, known: 128, waitMs: WAIT_MS } as const;
/** Logins, with their TLS handshakes, that begin per second at the peers' port. */
export const PEER_HANDSHAKES = {
  strangers: { perSecond: 20, burst: 20 },
  known: { perSecond: 50, burst: 64 },
  turn: 1,
} as const;
/** The connection of a server that asks for its place: frames, and milliseconds. It keeps its place without a login. */
export const JOINER_VISIT = { frames: 4, ms: 15_000 } as const;
/** Joins that are being answered: each is a change of the metadata in hand, of which this server's own need most. */
export const JOINS_AT_ONCE = 4;
/** Join tokens that this server does not know, which only an entry of the log can tell: another may have made them just now. */
export const JOIN_GUESSES = { perSecond: 1, burst: 20 } as const;
/** Connections of servers of the cluster; each has one to each other. */
export const PEER_CONNECTIONS = 256;

const share = (frames: number, bytes: number): Share => ({ frames, bytes });
/** Frames and bytes per turn of the event loop. */
export const CONTROL_TURN = { each: share(16, 64 << 10), all: share(256, 1 << 20) } as const;
export const PEER_TURN = { each: share(64, 8 << 20), all: share(256, 16 << 20) } as const;

/** Bytes that all clients and operators together have not taken yet. */
export const CONTROL_OUTBOX = 256 << 20;
export const PEER_OUTBOX = 256 << 20;
/** With more than this to take, a client or operator gets no more calls answered. */
export const ANSWERS_UNREAD = 64 << 10;

/** Calls of one connection that are being answered. */
export const CALLS_MAX = 32;
/** Calls that wait for the thread of Raft. */
export const CALLS_ALL = 64;
/** Calls of one operator from one address that the audit has a line of; and how long one may wait for its turn. */
export const AUDITED_CALLS = { perSecond: 10, burst: 200 } as const;
export const AUDITED_WAIT_MS = 2000;
/** Operators whose calls are counted. */
export const AUDITED_OPERATORS = 1024;
/** Between the answer to a status and the next one that is put together. */
export const STATUS_PAUSE_MS = 10;
