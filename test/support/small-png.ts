/** Makes a browser's screenshot small enough for the documents: its 256 commonest colours, packed as well as zlib can. */
import { crc32, deflateSync, inflateSync } from 'node:zlib';

const SIGNATURE = Buffer.from('\x89PNG\r\n\x1a\n', 'latin1');
const COLOURS = 256;
/** Bytes per pixel, by PNG's colour type: RGB, RGBA. */
const PIXEL: Readonly<Record<number, number>> = { 2: 3, 6: 4 };

interface Pixels {
  readonly width: number;
  readonly height: number;
  /** 0xRRGGBB, row by row. */
  readonly colours: Uint32Array;
}

function* chunksOf(png: Buffer): Generator<{ readonly type: string; readonly body: Buffer }> {
  for (let at = SIGNATURE.length; at < png.length;) {
    const bytes = png.readUInt32BE(at);
    yield { type: png.toString('latin1', at + 4, at + 8), body: png.subarray(at + 8, at + 8 + bytes) };
    at += 12 + bytes;
  }
}

/** The nearest of left, above and upper left to what they predict together. */
function paeth(left: number, above: number, corner: number): number {
  const sum = left + above - corner;
  const [a, b, c] = [Math.abs(sum - left), Math.abs(sum - above), Math.abs(sum - corner)];
  return a <= b && a <= c ? left : b <= c ? above : corner;
}

const PREDICTED: readonly ((left: number, above: number, corner: number) => number)[] = [
  () => 0,
  (left) => left,
  (_, above) => above,
  (left, above) => (left + above) >> 1,
  paeth,
];

function decode(png: Buffer): Pixels {
  const chunks = [...chunksOf(png)];
  const head = chunks.find(({ type }) => type === 'IHDR')?.body ?? Buffer.alloc(13);
  const [width, height, pixel] = [head.readUInt32BE(0), head.readUInt32BE(4), PIXEL[head[9] ?? 0]];
  if (pixel === undefined || head[8] !== 8 || head[12] !== 0) throw new Error('a PNG of a kind that is not read here');
  const packed = chunks.filter(({ type }) => type === 'IDAT').map(({ body }) => body);
  const raw = inflateSync(Buffer.concat(packed));
  const rowBytes = width * pixel;
  const rows = Buffer.alloc(height * rowBytes);
  for (let y = 0; y < height; y++) {
    const predicted = PREDICTED[raw[y * (rowBytes + 1)] ?? 0];
    if (predicted === undefined) throw new Error('an unknown filter of PNG');
    for (let x = 0; x < rowBytes; x++) {
      const at = y * rowBytes + x;
      const left = x < pixel ? 0 : (rows[at - pixel] ?? 0);
      const above = y === 0 ? 0 : (rows[at - rowBytes] ?? 0);
      const corner = x < pixel || y === 0 ? 0 : (rows[at - rowBytes - pixel] ?? 0);
      rows[at] = (raw[y * (rowBytes + 1) + 1 + x] ?? 0) + predicted(left, above, corner);
    }
  }
  const colours = Uint32Array.from({ length: width * height }, (_, i) => rows.readUIntBE(i * pixel, 3));
  return { width, height, colours };
}

function chunk(type: string, body: Buffer): Buffer {
  const [bytes, named, sum] = [Buffer.alloc(4), Buffer.concat([Buffer.from(type, 'latin1'), body]), Buffer.alloc(4)];
  bytes.writeUInt32BE(body.length);
  sum.writeUInt32BE(crc32(named));
  return Buffer.concat([bytes, named, sum]);
}

/** How unlike two colours are. */
const distance = (a: number, b: number): number =>
  [16, 8, 0].reduce((sum, shift) => sum + (((a >> shift) & 255) - ((b >> shift) & 255)) ** 2, 0);

export function smallPng(png: Buffer): Buffer {
  const { width, height, colours } = decode(png);
  const times = new Map<number, number>();
  for (const colour of colours) times.set(colour, (times.get(colour) ?? 0) + 1);
  const palette = [...times].sort(([, a], [, b]) => b - a).slice(0, COLOURS).map(([colour]) => colour); // prettier-ignore
  const index = new Map(palette.map((colour, i) => [colour, i]));
  const nearest = (colour: number): number => {
    const known = index.get(colour);
    if (known !== undefined) return known;
    const best = palette.reduce((a, b) => (distance(b, colour) < distance(a, colour) ? b : a));
    index.set(colour, index.get(best) ?? 0);
    return index.get(best) ?? 0;
  };
  const rows = Buffer.alloc(height * (width + 1));
  for (let y = 0; y < height; y++)
    for (let x = 0; x < width; x++) rows[y * (width + 1) + 1 + x] = nearest(colours[y * width + x] ?? 0);
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  // 8 bits, with a palette.
  head.set([8, 3], 8);
  const table = Buffer.from(palette.flatMap((colour) => [(colour >> 16) & 255, (colour >> 8) & 255, colour & 255]));
  const packed = deflateSync(rows, { level: 9 });
  return Buffer.concat([
    SIGNATURE,
    chunk('IHDR', head),
    chunk('PLTE', table),
    chunk('IDAT', packed),
    chunk('IEND', Buffer.alloc(0)),
  ]);
}
