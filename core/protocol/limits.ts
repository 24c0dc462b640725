/**
 * What a frame may cost before anything of it is believed. Checked on the raw bytes (frame.ts, scan.ts) before msgpackr
 * sees them.
 *
 * Five situations, five limits:
 *   - to a server, from a connection whose hello is not yet accepted, and from clients that make no calls: one hello;
 *   - to a server, from operators: small;
 *   - from a server that asks for its place: one call with its addresses and a token;
 *   - between servers, after the hello was accepted: Raft appends and proposals, a few MiB;
 *   - to a client, from its server: the map. A map push is cut into frames of about MAP_FRAME_BYTES, one shard whole,
 *     so the larger limit is needed by a shard of many segments only.
 */
export interface FrameLimits {
  /** Bytes of the frame after its length. */
  readonly bytes: number;
  /** Arrays and maps inside each other. */
  readonly depth: number;
  /** Values in all, keys of maps included. */
  readonly elements: number;
  /** Bytes of one string; binary values are bounded by `bytes` alone. */
  readonly stringBytes: number;
}

export const HELLO_FRAME_LIMITS: FrameLimits = { bytes: 2 << 10, depth: 4, elements: 64, stringBytes: 1536 };
export const JOINER_FRAME_LIMITS: FrameLimits = { bytes: 16 << 10, depth: 6, elements: 512, stringBytes: 1536 };
export const CLIENT_FRAME_LIMITS: FrameLimits = { bytes: 64 << 10, depth: 12, elements: 8192, stringBytes: 4096 };
export const PEER_FRAME_LIMITS: FrameLimits = { bytes: 4 << 20, depth: 16, elements: 262_144, stringBytes: 4096 };
export const SERVER_FRAME_LIMITS: FrameLimits = { bytes: 4 << 20, depth: 12, elements: 262_144, stringBytes: 4096 };

/** A metadata command, as a Raft entry carries it: the largest opens a shard of REGIONS_MAX regions of 9 fields. */
export const COMMAND_LIMITS: FrameLimits = { bytes: 1 << 20, depth: 12, elements: 160 << 10, stringBytes: 4096 };
/** A whole metadata state, as a snapshot carries it. */
export const STATE_LIMITS: FrameLimits = { bytes: 256 << 20, depth: 16, elements: 16_777_216, stringBytes: 4096 };

/** A push of the map is cut where a frame would grow past this. */
export const MAP_FRAME_BYTES = 256 << 10;
/**
 * Bytes of Raft entries that one append between servers carries at most; leaves room in a frame for what stands around
 * them.
 */
export const APPEND_BYTES = 1 << 20;
