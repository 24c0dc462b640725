/**
 * connect(): the way into the SDK.
 *
 *     await connect('db1:7400')
 *     await connect(['db1:7400', 'db2:7400'])
 *     await connect<User>({ servers: 'db1:7400,db2:7400', codec: 'msgpack' })
 */
import { knowCallers } from './call-channel.js';
import { timeCalls } from './call-times.js';
import { Client, tracedOf } from './client.js';
import { resolveCodec, type BufferValue, type Codec } from './codec.js';
import { parseOptions, type ConnectOptions, type Servers } from './options.js';
import { Cluster } from './cluster.js';
import { argumentError, asFarkvError, FarkvError, textOfError } from './errors.js';
import { isTraced, trace } from './trace.js';

/**
 * Connects to a cluster. Resolves when its data planes can be used; rejects with a FarkvError: ERR_CONFIG and
 * ERR_ADDRESS_INVALID for options, ERR_UNAUTHORIZED, ERR_PROTOCOL_VERSION, ERR_UNSUPPORTED when no transport can be
 * used, ERR_DISCONNECTED, within about a second, when every server's machine says that nobody listens there, ERR_TIMEOUT
 * when nobody answers.
 *
 * The codec decides what values are: Buffers (the default), anything that MessagePack holds (`connect<User>({ codec:
 * 'msgpack', ... })`), or what a codec of your own makes of bytes.
 */
export function connect(
  options: Servers | (ConnectOptions & { readonly codec?: 'buffer' | undefined }),
): Promise<Client<BufferValue, Buffer>>;
export function connect<T = unknown>(options: ConnectOptions & { readonly codec: 'msgpack' }): Promise<Client<T>>;
export function connect<In, Out>(
  options: ConnectOptions & { readonly codec: Codec<In, Out> },
): Promise<Client<In, Out>>;
export async function connect(
  options: Servers | (ConnectOptions & { readonly codec?: 'buffer' | 'msgpack' | Codec<never, unknown> | undefined }),
  ...more: never[]
): Promise<Client<never, unknown>> {
  if (more.length > 0)
    throw argumentError("connect takes one argument: connect({ servers: '127.0.0.1:7400', codec: 'msgpack' })");
  try {
    const settings = parseOptions(options);
    const codec = codecOf(options);
    const cluster = new Cluster(settings);
    const parts = await cluster.open();
    if (settings.latencies) {
      knowCallers();
      timeCalls(parts.operations);
    }
    const client = new Client<never, unknown>(cluster, parts, settings, codec);
    if (isTraced()) trace(tracedOf(client));
    return client;
  } catch (error) {
    throw asFarkvError(error, 'ERR_CONFIG');
  }
}

/** Throws ERR_CONFIG, as for the other options of connect(). */
function codecOf(options: unknown): Codec<never, unknown> {
  const { codec } = options as { readonly codec?: 'buffer' | 'msgpack' | Codec<never, unknown> };
  try {
    return resolveCodec(codec);
  } catch (cause) {
    throw new FarkvError('ERR_CONFIG', textOfError(cause), { cause });
  }
}
