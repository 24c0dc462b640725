// Whether the dynamic loader would find each symbol of a program by its table DT_GNU_HASH: postject writes that table
// anew, and has damaged it on some machines. An addon would then not find Node.js's functions.
import { readFileSync } from 'node:fs';

const SECTION_BYTES = 64;
const SYMBOL_BYTES = 24;
const WORD_BITS = 64;

/** Sections of a 64-bit little-endian ELF file, by their names. */
function sectionsOf(file) {
  const at = Number(file.readBigUInt64LE(0x28));
  const [size, count, names] = [0x3a, 0x3c, 0x3e].map((offset) => file.readUInt16LE(offset));
  if (size !== SECTION_BYTES) throw new Error('no ELF file of 64 bits');
  const header = (i) => file.subarray(at + i * size, at + (i + 1) * size);
  const content = (h) => {
    const begin = Number(h.readBigUInt64LE(0x18));
    return file.subarray(begin, begin + Number(h.readBigUInt64LE(0x20)));
  };
  const text = content(header(names));
  return new Map(
    Array.from({ length: count }, (_, i) => [textAt(text, header(i).readUInt32LE(0)), content(header(i))]),
  );
}

const textAt = (table, at) => table.toString('latin1', at, table.indexOf(0, at));

function gnuHash(name) {
  let hash = 5381;
  for (const byte of Buffer.from(name, 'latin1')) hash = (Math.imul(hash, 33) + byte) >>> 0;
  return hash;
}

/** The names that a look-up would miss, of those in the table and of `needed`. */
export function unfoundSymbols(path, needed) {
  const sections = sectionsOf(readFileSync(path));
  const [table, symbols, names] = ['.gnu.hash', '.dynsym', '.dynstr'].map((name) => sections.get(name));
  const [buckets, first, words, shift] = [0, 4, 8, 12].map((at) => table.readUInt32LE(at));
  const bucketsAt = 16 + words * 8;
  const chainAt = bucketsAt + buckets * 4;

  const mayHave = (hash) => {
    const word = table.readBigUInt64LE(16 + (Math.floor(hash / WORD_BITS) % words) * 8);
    return [hash, hash >>> shift].every((one) => (word >> BigInt(one % WORD_BITS)) & 1n);
  };
  const has = (index, hash) => {
    let at = table.readUInt32LE(bucketsAt + (hash % buckets) * 4);
    while (at >= first) {
      const link = table.readUInt32LE(chainAt + (at - first) * 4);
      if (at === index) return link >>> 1 === hash >>> 1;
      // The last one of its bucket.
      if (link & 1) return false;
      at += 1;
    }
    return false;
  };

  const unfound = [];
  const missing = new Set(needed);
  for (let i = first; i < symbols.length / SYMBOL_BYTES; i += 1) {
    const name = textAt(names, symbols.readUInt32LE(i * SYMBOL_BYTES));
    const hash = gnuHash(name);
    missing.delete(name);
    if (!mayHave(hash) || !has(i, hash)) unfound.push(name);
  }
  return [...unfound, ...missing];
}
