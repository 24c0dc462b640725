/** What the rest of farkv uses of the control plane's protocol. */
export {
  APPEND_BYTES,
  CLIENT_FRAME_LIMITS,
  COMMAND_LIMITS,
  HELLO_FRAME_LIMITS,
  JOINER_FRAME_LIMITS,
  PEER_FRAME_LIMITS,
  SERVER_FRAME_LIMITS,
  type FrameLimits,
} from './limits.js';
export { decodeValue, encodeValue } from './value.js';
export { encodeFrame, FrameReader } from './frame.js';
export { clientMap, MapAssembler, mapFrames } from './client-map.js';
export { printable } from './check.js';
export { checkFrame, knownCode, MESSAGE_MAX } from './frames.js';
export * from './messages.js';
