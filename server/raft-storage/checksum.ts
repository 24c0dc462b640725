/**
 * Little-endian fields and the checksum of what is stored. The checksum is CRC32C, handed in: it exists once, in native
 * code.
 */
export type Checksum = (bytes: Uint8Array) => number;

export function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** A u64 that is a safe integer in all that this program wrote; NaN, which fails every check, where it is not. */
export function readU64(view: DataView, at: number): number {
  const high = view.getUint32(at + 4, true);
  return high > 0x1fffff ? NaN : high * 0x1_0000_0000 + view.getUint32(at, true);
}

export function writeU64(view: DataView, at: number, value: number): void {
  view.setUint32(at, value >>> 0, true);
  view.setUint32(at + 4, Math.floor(value / 0x1_0000_0000), true);
}
