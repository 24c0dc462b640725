/**
 * The way of an adapter to the cluster: a client that the program has, or an address to connect to at the first call.
 * An adapter's host makes its stores before anything can be awaited, so nothing is connected earlier.
 *
 * Whoever connected closes: close() ends the adapter's own connection and never a client that it was given.
 */
import { connect } from '../client/connect.js';
import type { Client } from '../client/client.js';
import { Keyspace } from '../client/keyspace.js';
import type { BufferValue } from '../client/codec.js';
import { FarkvError } from '../client/errors.js';
import type { ConnectOptions, Servers } from '../client/options.js';

/** A client, a view of one (`client.namespace(7)`), or what connect() takes. */
export type Source = Keyspace<never, unknown> | Servers | ConnectOptions;

export class Connection {
  readonly #source: Source;
  #connecting: Promise<Client<BufferValue, Buffer>> | undefined;
  #closed = false;

  constructor(source: Source) {
    this.#source = source;
  }

  /** The namespace of the source, with the codec of the source. A failed attempt to connect is made again next time. */
  async use(): Promise<Keyspace<never, unknown>> {
    if (this.#closed) throw new FarkvError('ERR_CLOSED', 'the store was closed; make another one');
    if (Keyspace.isKeyspace(this.#source)) return this.#source;
    this.#connecting ??= this.#connect(this.#source);
    return await this.#connecting;
  }

  async close(): Promise<void> {
    this.#closed = true;
    const connecting = this.#connecting;
    this.#connecting = undefined;
    // One that fails has told those that wait for it.
    const client = await connecting?.catch(() => undefined);
    await client?.close();
  }

  async #connect(source: Servers | ConnectOptions): Promise<Client<BufferValue, Buffer>> {
    try {
      return await connect(source as ConnectOptions);
    } catch (error) {
      this.#connecting = undefined;
      throw error;
    }
  }
}
