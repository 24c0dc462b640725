/**
 * YCSB's hash of a record number: FNV-1a over its eight octets, lowest first, then the absolute value as Java takes it.
 * Which key a record number gets, and which records are hot in the scrambled zipfian distribution, follow from it bit
 * by bit.
 *
 * The 64-bit product is made of 32-bit halves: the same with BigInt costs about a microsecond, more than a GET.
 * Invariant: hashed.high and hashed.low are unsigned 32-bit halves of the last result; a caller reads them before the
 * next call.
 */
const OFFSET_HIGH = 0xcbf29ce4;
const OFFSET_LOW = 0x84222325;
/** The prime is 2^40 + 0x1b3. */
const PRIME_LOW = 0x1b3;

export const hashed = { high: 0, low: 0 };

/** value: an integer from 0 to 2^53. */
export function fnvHash64(value: number): void {
  let octetsLow = value >>> 0;
  let octetsHigh = (value / 4294967296) >>> 0;
  let high = OFFSET_HIGH;
  let low = OFFSET_LOW;
  for (let i = 0; i < 8; i++) {
    low = (low ^ (octetsLow & 0xff)) >>> 0;
    octetsLow = (octetsLow >>> 8) | (octetsHigh << 24);
    octetsHigh >>>= 8;
    // (high, low) * (2^40 + 0x1b3) mod 2^64. low * 0x1b3 is below 2^41, exact as a double; 2^40 shifts low by 8 into
    // the high half.
    const product = low * PRIME_LOW;
    high = (Math.imul(high, PRIME_LOW) + ((product / 4294967296) >>> 0) + (low << 8)) >>> 0;
    low = product >>> 0;
  }
  if (high >= 0x80000000) {
    // Math.abs of Java: two's complement, and -2^63 stays what it is.
    low = (~low + 1) >>> 0;
    high = (~high + (low === 0 ? 1 : 0)) >>> 0;
  }
  hashed.high = high;
  hashed.low = low;
}

/** fnvHash64(value) % modulus, as Java's `%` on longs; modulus is an integer from 1 to 2^37. */
export function fnvModulo(value: number, modulus: number): number {
  fnvHash64(value);
  const minimum = hashed.high === 0x80000000;
  let rest = hashed.high % modulus;
  rest = (rest * 65536 + (hashed.low >>> 16)) % modulus;
  rest = (rest * 65536 + (hashed.low & 0xffff)) % modulus;
  return minimum && rest !== 0 ? -rest : rest;
}

/** (high, low) as Java's Long.toString. */
export function decimal64(high: number, low: number): string {
  if (high < 0x200000) return String(high * 4294967296 + low);
  if (high === 0x80000000 && low === 0) return '-9223372036854775808';
  // Long division by 10^9 over 16-bit digits: each step stays below 2^46.
  const h1 = high >>> 16,
    h0 = high & 0xffff,
    l1 = low >>> 16,
    l0 = low & 0xffff;
  let rest = h1;
  rest = rest * 65536 + h0;
  const q2 = Math.floor(rest / 1e9);
  rest = (rest - q2 * 1e9) * 65536 + l1;
  const q1 = Math.floor(rest / 1e9);
  rest = (rest - q1 * 1e9) * 65536 + l0;
  const q0 = Math.floor(rest / 1e9);
  const last = rest - q0 * 1e9;
  // The quotient is below 2^63 / 10^9 < 2^34.
  const quotient = (q2 * 65536 + q1) * 65536 + q0;
  return String(quotient) + String(last + 1e9).slice(1);
}
