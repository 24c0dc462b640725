/** An entry on its way out of a cluster or into one: all that is stored with a key, but the version's meaning. */
export interface EntryRecord {
  /** 0 to 65535. */
  readonly namespace: number;
  readonly key: Buffer;
  readonly value: Buffer;
  /** Number of the codec that wrote the value (client/codec.ts). */
  readonly codec: number;
  readonly flags: number;
  /** Wall clock, milliseconds since the epoch; undefined: never. */
  readonly expiresAtMs: number | undefined;
}
