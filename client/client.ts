/** The Client that connect() gives: a Keyspace (keyspace.ts) that also has the connection. */
import type { Cluster, Origin, Parts } from './cluster.js';
import type { Family as MetricFamily } from '../core/exposition.js';
import { toHex64 } from '../core/hex64.js';
import type { NativeClient } from '../native/native-client.js';
import type { Codec } from './codec.js';
import { guardedNow } from './errors.js';
import { Keyspace } from './keyspace.js';
import { callTimes } from './call-times.js';
import { checkLabels, metricsOf } from './metrics.js';
import type { Operations } from './operations.js';
import type { Settings } from './options.js';
import type { Scanner, ScanOfShard, ScanStep } from './scan.js';
import { traceNoMore, type Traced } from './trace.js';
import type { ClientStats, Transport } from './transport.js';

/** What backups see of a connection: no method of a client, since a program has no use for it. */
export interface ShardAccess {
  /** Which cluster this is, and the part of it that is the client's. */
  origin(): Origin;
  /**
   * One step of a scan of one shard, of all namespaces too: with what else is stored with each value, undecoded. The
   * step after the last has the cursor 0n.
   */
  scanShard(what: ScanOfShard): Promise<ScanStep>;
}

export let shardAccessOf: (client: Client<never, unknown>) => ShardAccess;

/** What a trace (trace.ts) sees of one. */
export let tracedOf: (client: Client<never, unknown>) => Traced;

/** What `farkv gateway` sees of one: the Redis gateway over its connections. */
export type RedisAccess = Pick<NativeClient, 'listenRedis' | 'endRedis' | 'closeRedis'>;
export let redisAccessOf: (client: Client<never, unknown>) => RedisAccess;

/** A connected client. It does not keep a process alive while nothing is under way. */
export class Client<In, Out = In> extends Keyspace<In, Out> {
  readonly #cluster: Cluster;
  readonly #scanner: Scanner;
  readonly #timeoutMs: number;
  readonly #native: NativeClient;
  readonly #operations: Operations;

  static {
    redisAccessOf = (client) => client.#native;
    shardAccessOf = (client) => ({
      origin: () => client.#cluster.origin(),
      scanShard: (what) => client.#scanner.step(what, { timeoutMs: client.#timeoutMs }),
    });
  }

  static {
    tracedOf = (client) => ({
      caller: client.#operations,
      stats: () => client.#cluster.stats(),
      takeSteps: () => client.#native.takeSteps(),
      hashOf: (space, key) => {
        const hash = client.#native.hashOf(space, key);
        return typeof hash === 'bigint' ? toHex64(hash) : undefined;
      },
      shardOf: (space, key) => client.#native.shardOf(space, key),
    });
  }

  /** @internal connect() makes clients. */
  constructor(cluster: Cluster, parts: Parts, settings: Settings, codec: Codec<In, Out>) {
    super({ ...parts, defaults: { timeoutMs: settings.timeoutMs } }, settings.namespace, codec);
    this.#cluster = cluster;
    this.#scanner = parts.scanner;
    this.#timeoutMs = settings.timeoutMs;
    this.#native = parts.native;
    this.#operations = parts.operations;
  }

  /** Which transport reaches which server, and why that one. */
  transports(): readonly Transport[] {
    return this.#cluster.transports();
  }

  /** Counters since connect. */
  stats(): ClientStats {
    return this.#cluster.stats();
  }

  /**
   * The same as metrics, under the names that servers use; metricsText makes text of them. `labels` are on each sample:
   * of a program with several clients they say whose it is. Throws ERR_ARGUMENT.
   */
  metrics(labels: Readonly<Record<string, string>> = {}): readonly MetricFamily[] {
    const checked = guardedNow(() => checkLabels(labels));
    return metricsOf(this.#cluster.stats(), callTimes(this.#operations), checked);
  }

  /** Ends what is under way with ERR_CLOSED, changes that were sent with ERR_INDETERMINATE, and disconnects. May be called again. */
  close(): Promise<void> {
    this.#cluster.close();
    traceNoMore(this.#operations);
    return Promise.resolve();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
