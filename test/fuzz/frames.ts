/** Bytes to frames (core/protocol): a stream gives the same frames, and the same end, however it is cut. */
import { FarkvError } from '../../core/errors.js';
import {
  CLIENT_FRAME_LIMITS,
  encodeFrame,
  FrameReader,
  HELLO_FRAME_LIMITS,
  PEER_FRAME_LIMITS,
  SERVER_FRAME_LIMITS,
  type Frame,
} from '../../core/protocol/index.js';
import { hello, shard, STATE } from '../support/control-rig.js';
import { bytesOf, type Input } from './input.js';
import { must, type FuzzTarget } from './target.js';

const LIMITS = [HELLO_FRAME_LIMITS, CLIENT_FRAME_LIMITS, PEER_FRAME_LIMITS, SERVER_FRAME_LIMITS] as const;

interface Read {
  readonly frames: readonly Frame[];
  /** The message of the error that ended it. */
  readonly end: string | undefined;
}

function read(bytes: Uint8Array, limits: (typeof LIMITS)[number], piece: number): Read {
  const reader = new FrameReader(limits);
  const frames: Frame[] = [];
  let kept = 0;
  try {
    for (let at = 0; at < bytes.length; at += piece) {
      kept += Math.min(piece, bytes.length - at);
      reader.push(bytes.slice(at, at + piece), (frame, size) => {
        kept -= size;
        return frames.push(frame) > 0;
      });
      must(kept < limits.bytes + 4, 'more is kept than a frame may have');
    }
  } catch (error) {
    must(error instanceof FarkvError && error.code === 'ERR_PROTOCOL', `not ERR_PROTOCOL: ${String(error)}`);
    return { frames, end: error.message };
  }
  return { frames, end: undefined };
}

const map = { ...STATE, members: [], shards: [shard(0), shard(1)] };
export const WELCOME = { t: 'welcome', ok: true, version: 1, serverId: 's1', clusterId: STATE.clusterId } as const;
export const MAP = {
  t: 'map',
  map: { clusterId: map.clusterId, mapEpoch: 1, hashSeed: map.hashSeed, members: map.members, shards: map.shards },
} as const;

const first: readonly Input[] = [
  [['frame', hello()]],
  [
    ['frame', WELCOME],
    ['frame', MAP],
  ],
  [
    ['frame', { t: 'welcome', ok: false, code: 'ERR_UNAUTHORIZED', message: 'no', versions: [1, 1] }],
    ['frame', { t: 'answer', id: 1, ok: true, result: [1, 'a', { b: new Uint8Array(3) }] }],
    ['frame', { t: 'answer', id: 2, ok: false, code: 'ERR_BUSY', message: 'later' }],
  ],
  [
    ['frame', { t: 'call', id: 3, method: 'status', args: {} }],
    ['frame', { t: 'raft', message: { type: 'heartbeat', from: 2, to: 1, term: 1 } }],
    ['frame', { t: 'ping', id: 1 }],
    ['frame', { t: 'pong', id: 1 }],
  ],
  // One beyond the bytes of each limit, and one of too many elements.
  ...[2 << 10, 64 << 10, 4 << 20].map((bytes): Input => [['frame', { ...hello(), more: new Uint8Array(bytes) }]]),
  ...[64, 8192].map((elements): Input => [['frame', { ...hello(), more: Array(elements).fill(0) }]]),
];

export const frames: FuzzTarget = {
  name: 'frames',
  first,
  open: () =>
    Promise.resolve({
      run: (input) => {
        const bytes = Buffer.concat(input.map((step) => bytesOf(step) ?? new Uint8Array(0)));
        for (const limits of LIMITS) {
          const whole = read(bytes, limits, Math.max(1, bytes.length));
          const pieces = read(bytes, limits, 1 + (bytes.length % 97));
          const same = (a: readonly Frame[], b: readonly Frame[]): boolean =>
            Buffer.concat(a.map(encodeFrame)).equals(Buffer.concat(b.map(encodeFrame)));
          must(whole.end === pieces.end && same(whole.frames, pieces.frames), 'a stream in pieces reads otherwise');
        }
      },
      close: () => Promise.resolve(),
    }),
};
