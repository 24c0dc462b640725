/** farkv's client SDK: what `import ... from 'farkv'` gives. */
export { connect } from './connect.js';
export { ABSENT } from './batch-reads.js';
export { Client, Keyspace, type PutItem, type Swap } from './client.js';
export { bufferCodec, msgpackCodec, type BufferValue, type Codec } from './codec.js';
export { FarkvError, type ErrorCode } from './errors.js';
export type { ReadOptions, WriteOptions } from './arguments.js';
export type { ClientEvent, ConnectOptions, Servers } from './options.js';
export type { Key } from './pending.js';
export type { PreparedKey } from '../native/native-client.js';
export type { ScanEntry, ScanKey, ScanOptions, ScanPage } from './scan.js';
export type { ClientStats, Transport, TransportChoice } from './transport.js';
export type { Entry } from './value-reader.js';
export type { Trust as ClientTls } from '../net/tls.js';
