/** 64 bits as text, 16 hexadecimal digits: incarnations, ids of copies and clients. hex64 of protocol/check.ts checks it. */

export const toHex64 = (bits: bigint): string => bits.toString(16).padStart(16, '0');
export const fromHex64 = (hex: string): bigint => BigInt(`0x${hex}`);
