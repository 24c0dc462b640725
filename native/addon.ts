/**
 * The native boundary: what the Node-API addon (native/node/) exports, and its loading.
 *
 * One crossing per call or per batch; results that come later are fetched with `drain`, many at a time. Two classes:
 * DataPlane is the owner's side (used by server/ in its worker thread), NativeClient the client's (used by client/).
 * Neither is for users. 64-bit numbers are bigint where every bit counts (versions), Number where 2^53 is enough
 * (bytes, milliseconds).
 */
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { FarkvError } from '../core/errors.js';
import type { Provider } from '../core/providers.js';
import type { DataPlane, DataPlaneOptions, TicketSecret } from './data-plane.js';
import type { NativeClient, NativeClientOptions } from './native-client.js';

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
  /**
   * Why this provider cannot be used here (not built, or a library is missing), or undefined. A device is not looked
   * for.
   */
  providerMissing(provider: Provider): string | undefined;
  /** Addresses of this host that lead to an RDMA device. Empty where there is none, or no library. */
  rdmaAddresses(): RdmaAddress[];
}

function packageRoot(): string {
  let dir = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(dir, 'package.json'))) dir = dirname(dir);
  return dir;
}

function load(): Addon {
  const require = createRequire(import.meta.url);
  try {
    const build = require('node-gyp-build') as (dir: string) => unknown;
    return build(packageRoot()) as Addon;
  } catch (cause) {
    throw new FarkvError(
      'ERR_ADDON',
      `farkv's native addon could not be loaded on ${process.platform}-${process.arch}. ` +
        'Prebuilt binaries are for linux-x64 (glibc); elsewhere install gcc, make and python3, then run: npm rebuild farkv',
      { cause },
    );
  }
}

export const addon: Addon = load();
