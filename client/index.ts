/** farkv's client SDK: what `import ... from 'farkv'` gives. */
export { connect } from './connect.js';
export { ABSENT } from './batch-reads.js';
export type { BatchFailures } from './batch.js';
export type { CallMessage } from './call-channel.js';
export { Client } from './client.js';
export { bufferCodec, msgpackCodec, type BufferValue, type Codec } from './codec.js';
export { FarkvError, type ErrorCode } from './errors.js';
export { Keyspace } from './keyspace.js';
export type { Swap } from './outcomes.js';
export type { PutItem } from './change-many.js';
export type { NewEntryOptions, ReadOptions, SwapOptions, TouchOptions, WriteOptions } from './arguments.js';
export type { ClientEvent, ConnectOptions, Servers } from './options.js';
export type { Key } from './pending.js';
export type { PreparedKey } from '../native/native-client.js';
export type { CountOptions, ScanEntry, ScanKey, ScanOptions, ScanPage } from './scan.js';
export {
  exposition as metricsText,
  type Family as MetricFamily,
  type Sample as MetricSample,
} from '../core/exposition.js';
export type { ClientStats, Transport, TransportChoice } from './transport.js';
export type { Update, Updated } from './update.js';
export type { Entry } from './value-reader.js';
export type { Trust as ClientTls } from '../net/tls.js';
