/**
 * The messages of the control plane: length-prefixed msgpackr frames over TCP (or TLS), on one port for clients,
 * operators and peers. The first frame of a connection is a Hello; its role decides what may follow.
 *
 * Not for the data path: GET and PUT travel over the fabric (native/wire/wire.h).
 */
import type { ErrorCode } from '../errors.js';
import type { Member, Shard } from '../metadata/state.js';

export const PROTOCOL_MIN = 1;
export const PROTOCOL_MAX = 1;

export type Role = 'client' | 'admin' | 'peer';

/** First frame from the side that connects. */
export interface Hello {
  readonly t: 'hello';
  readonly magic: 'farkv';
  readonly versions: readonly [min: number, max: number];
  readonly role: Role;
  readonly token?: string;
  /** Peers: who is calling and of which cluster. */
  readonly from?: string;
  readonly clusterId?: string;
  /**
   * Peers: 64 random bits of the data directory, hex. A server that lost its directory must not vote again under its
   * old id.
   */
  readonly instance?: string;
  /** Peers: the ids of the metadata group's first servers, sorted; both ends must have been given the same. */
  readonly voters?: readonly string[];
  /** Peers: it is not of this cluster yet and asks to be (the call `join`). */
  readonly join?: boolean;
  /** Clients that come back show their last ticket and keep their id, so that retried changes are recognised. */
  readonly ticket?: Uint8Array;
}

export type ClientAccess = 'writer' | 'reader';

/** First frame back. After `ok: false` the server closes. */
export type Welcome =
  | {
      readonly t: 'welcome';
      readonly ok: true;
      readonly version: number;
      readonly serverId: string;
      readonly clusterId: string;
      /** 64 bits, hex: for people. */
      readonly clientId?: string;
      /** Clients: what owners let it do. */
      readonly access?: ClientAccess;
      /** Clients: the tenant whose shards they may use; undefined: the default one. */
      readonly tenant?: string;
      readonly ticket?: Uint8Array;
      readonly instance?: string;
    }
  | {
      readonly t: 'welcome';
      readonly ok: false;
      readonly code: ErrorCode;
      readonly message: string;
      readonly versions: readonly [number, number];
    };

/** What a client knows of the cluster. */
export interface ClientMap {
  readonly clusterId: string;
  readonly mapEpoch: number;
  readonly hashSeed: string;
  /** Copies take the places of owners: they know what was sent to those. */
  readonly replicated?: boolean;
  readonly members: readonly Member[];
  readonly shards: readonly Shard[];
}

/**
 * Server to client: once after the welcome, then whenever mapEpoch rises. `ticket` comes again before the old one
 * expires. `partial`: shards that are not listed are as they were (members are always all listed). `more`: the push
 * goes on in the next map frame; the parts take effect together. MapAssembler (client-map.ts) puts the whole map
 * together from such frames.
 */
export interface MapPush {
  readonly t: 'map';
  readonly map: ClientMap;
  readonly ticket?: Uint8Array;
  readonly partial?: boolean;
  readonly more?: boolean;
}

/** A call and its answer, any role. `id` is the caller's. */
export interface Call {
  readonly t: 'call';
  readonly id: number;
  readonly method: string;
  readonly args: unknown;
}
export type Answer =
  | { readonly t: 'answer'; readonly id: number; readonly ok: true; readonly result: unknown }
  | {
      readonly t: 'answer';
      readonly id: number;
      readonly ok: false;
      readonly code: ErrorCode;
      readonly message: string;
    };

/**
 * Raft traffic between peers: `message` is a RaftMessage of core/raft, checked by core/protocol before it is stepped.
 */
export interface RaftFrame {
  readonly t: 'raft';
  readonly message: unknown;
}

export interface Ping {
  readonly t: 'ping';
  readonly id: number;
}
export interface Pong {
  readonly t: 'pong';
  readonly id: number;
}

export type Frame = Hello | Welcome | MapPush | Call | Answer | RaftFrame | Ping | Pong;
