/**
 * A YCSB record as one value, the same bytes for every database, so that a comparison compares stores and not
 * encodings.
 *
 *   number of fields (varint) | length of each field (varint each) | the fields' bytes one after the other
 *
 * Field i is `fieldnameprefix` + i; names are not stored. Ten fields of 100 bytes are 1,011 bytes. The lengths stand in
 * front so that one field is found, or replaced, without looking at the others.
 */

/** Where a field lies in its record. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

function varintBytes(value: number): number {
  let bytes = 1;
  for (let rest = value; rest >= 128; rest = Math.floor(rest / 128)) bytes++;
  return bytes;
}

function writeVarint(target: Uint8Array, offset: number, value: number): number {
  let at = offset;
  let rest = value;
  while (rest >= 128) {
    target[at++] = (rest % 128) | 128;
    rest = Math.floor(rest / 128);
  }
  target[at++] = rest;
  return at;
}

/** The bytes of a record with fields of these lengths. */
export function recordBytes(lengths: Iterable<number> & { readonly length: number }): number {
  let bytes = varintBytes(lengths.length);
  for (const length of lengths) bytes += varintBytes(length) + length;
  return bytes;
}

/** Writes the directory of a record at the front of target and returns where the first field's bytes begin. */
export function writeDirectory(target: Uint8Array, lengths: Iterable<number> & { readonly length: number }): number {
  let at = writeVarint(target, 0, lengths.length);
  for (const length of lengths) at = writeVarint(target, at, length);
  return at;
}

/** The spans of all fields; undefined when the bytes are not a record. */
export function readDirectory(record: Uint8Array): Span[] | undefined {
  const cursor = { at: 0 };
  const count = readVarint(record, cursor);
  if (count === undefined || count > record.length) return undefined;
  const lengths: number[] = [];
  for (let i = 0; i < count; i++) {
    const length = readVarint(record, cursor);
    if (length === undefined) return undefined;
    lengths.push(length);
  }
  let start = cursor.at;
  const spans = lengths.map((length) => {
    const span = { start, end: start + length };
    start += length;
    return span;
  });
  return start === record.length ? spans : undefined;
}

function readVarint(bytes: Uint8Array, cursor: { at: number }): number | undefined {
  let value = 0;
  for (let scale = 1; scale <= 2 ** 28; scale *= 128) {
    const byte = bytes[cursor.at++];
    if (byte === undefined) return undefined;
    value += (byte & 127) * scale;
    if (byte < 128) return value;
  }
  return undefined;
}

/**
 * A copy of `record` with field `index` replaced. undefined when the bytes are not a record with such a field. Where
 * the length stays, which is the common case, only the field's bytes are written anew.
 */
export function replaceField(record: Uint8Array, index: number, value: Uint8Array): Buffer | undefined {
  const spans = readDirectory(record);
  const span = spans?.[index];
  if (spans === undefined || span === undefined) return undefined;
  if (span.end - span.start === value.length) {
    const copy = Buffer.allocUnsafe(record.length);
    // Not copy.set(record): lmdb's shared buffer is longer than its `length` says.
    copy.set(record.subarray(0, record.length));
    copy.set(value, span.start);
    return copy;
  }
  const lengths = spans.map((s, i) => (i === index ? value.length : s.end - s.start));
  const changed = Buffer.allocUnsafe(recordBytes(lengths));
  let at = writeDirectory(changed, lengths);
  spans.forEach((s, i) => {
    const bytes = i === index ? value : record.subarray(s.start, s.end);
    changed.set(bytes, at);
    at += bytes.length;
  });
  return changed;
}
