/**
 * The native boundary: what the Node-API addon (native/node/) exports, and its loading.
 *
 * One crossing per call or per batch; results that come later are fetched with `drain`, many at a time. Two classes:
 * DataPlane is the owner's side (used by server/ in its worker thread), NativeClient the client's (used by client/).
 * Neither is for users. 64-bit numbers are bigint where every bit counts (versions), Number where 2^53 is enough
 * (bytes, milliseconds).
 */
import type { Provider } from '../core/providers.js';
import type { DataPlane, DataPlaneOptions, TicketSecret } from './data-plane.js';
import type { NativeClient, NativeClientOptions } from './native-client.js';
import { loadAddon } from './package.js';

/** Constants that exist once, in C. */
export interface Constants {
  /** Index: fkv_status. Members are 'OK', 'NOT_FOUND', 'VERSION_MISMATCH' or an ErrorCode. */
  readonly statusNames: readonly string[];
  readonly statusTexts: readonly string[];
  readonly keyMax: number;
  readonly valueMax: number;
  readonly dedupWindow: number;
  readonly wireVersionMin: number;
  readonly wireVersionMax: number;
  readonly layoutVersion: number;
  readonly memoryMin: number;
  /** Providers that this build has and whose libraries are here. */
  readonly providers: readonly Provider[];
  /** Those that there are, whether or not they can be used here: core/providers.ts has the same list. */
  readonly allProviders: readonly Provider[];
}

/** An address that leads to an RDMA device, and which. */
export interface RdmaAddress {
  readonly device: string;
  readonly networkInterface: string;
  readonly address: string;
  readonly iwarp: boolean;
}

/** An RDMA device, opened for a moment. */
export interface RdmaDevice {
  readonly name: string;
  /** Why it could not be opened; then the numbers are 0. */
  readonly error?: string;
  readonly regionBytesMax: number;
  readonly regionsMax: number;
  readonly queuePairsMax: number;
}

export interface Ticket {
  /** Not 0. */
  readonly client: bigint;
  readonly issuedMs: number;
  readonly expiresMs: number;
  readonly tenant: number;
  /** Of FKV_TICKET_READ (1) and FKV_TICKET_WRITE (2). */
  readonly flags: number;
}

/** What native/node/ exports. */
export interface Addon {
  readonly constants: Constants;
  readonly DataPlane: new (options: DataPlaneOptions) => DataPlane;
  readonly NativeClient: new (options: NativeClientOptions) => NativeClient;
  /** A ticket with its key, 40 bytes (fkv_pass in native/wire/wire.h). */
  makeTicket(secret: TicketSecret, ticket: Ticket): Uint8Array;
  /** What such bytes say; undefined if they were made with none of these secrets. Expiry is not looked at. */
  openTicket(secrets: readonly TicketSecret[], ticket: Uint8Array): Ticket | undefined;
  hashKey(seed: Uint8Array, space: number, key: string | Uint8Array): bigint;
  crc32c(bytes: Uint8Array, crc?: number): number;
  /** fdatasync-free helpers that Node.js lacks. */
  bootTimeNs(): bigint;
  /** flock(LOCK_EX | LOCK_NB) on an open descriptor; false when another process holds it. */
  tryLock(fd: number): boolean;
  /** posix_fadvise(POSIX_FADV_DONTNEED): what is read of the file next is what its disk has. */
  dropCleanPages(fd: number): void;
  /**
   * Sends a datagram to a Unix socket, a path or @ and an abstract name: undefined, or why not. Waits a second at most.
   */
  notify(address: string, text: string): string | undefined;
  /**
   * Why this provider cannot be used here (not built, or a library is missing), or undefined. A device is not looked
   * for.
   */
  providerMissing(provider: Provider): string | undefined;
  /** Addresses of this host that lead to an RDMA device. Empty where there is none, or no library. */
  rdmaAddresses(): RdmaAddress[];
  /** The RDMA devices of this host. Empty where there is none, or no library. */
  rdmaDevices(): RdmaDevice[];
  /** Of the connections that this process makes over RDMA from now on: 0 to 255, and 0 is the kernel's. */
  rdmaTrafficClass(octet: number): void;
}

export const addon = loadAddon() as Addon;
