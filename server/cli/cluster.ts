/** An operator's connection to the first server that answers, and what is asked over it. */
import { FarkvError } from '../../core/errors.js';
import { allVisible } from '../../core/visible-text.js';
import type { ControlClient } from '../../net/control-client.js';
import { asRefusal } from '../../net/tls.js';
import type { ClusterStatus } from '../status.js';
import type { Connection } from './connection.js';
import { printError } from './output.js';

const LOOK_MS = 100;

export class ClusterConnection {
  readonly #client: ControlClient;
  readonly #timeoutMs: number;

  constructor(client: ControlClient, timeoutMs: number) {
    this.#client = client;
    this.#timeoutMs = timeoutMs;
  }

  close(): void {
    this.#client.close();
  }

  /** The answer, with every text in it made visible: it is for a line, and a server may lie. */
  async call(method: string, args: unknown): Promise<unknown> {
    return allVisible(await this.#client.call(method, args, this.#timeoutMs));
  }

  /** The server that is asked is told how long this waits: it shows others that take too long as unreachable. */
  async status(): Promise<ClusterStatus> {
    return (await this.call('status', { timeoutMs: this.#timeoutMs })) as ClusterStatus;
  }

  /**
   * Looks until the condition holds, and says what is in the way when that is something new. ERR_ABORTED, with what is
   * in the way, when it does not within the time: the servers answer, so it is no ERR_TIMEOUT. `atEnd`: that together.
   */
  async until(
    condition: (status: ClusterStatus) => boolean,
    waitMs: number,
    what: string,
    inTheWay: (status: ClusterStatus) => readonly string[],
    atEnd = inTheWay,
  ): Promise<ClusterStatus> {
    const deadline = performance.now() + waitMs;
    const said = new Set<string>();
    for (;;) {
      const status = await this.status();
      if (condition(status)) return status;
      if (performance.now() > deadline)
        throw new FarkvError(
          'ERR_ABORTED',
          [
            `${what} did not happen within ${waitMs} ms; it goes on, and farkv status shows how far it is`,
            ...atEnd(status),
          ].join('; '),
        );
      for (const line of inTheWay(status)) {
        if (!said.has(line)) printError(`${line}\n`);
        said.add(line);
      }
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    }
  }
}

/** Throws why this server is of no use; ERR_ABORTED with the signal. */
export async function openCluster(
  address: string,
  { timeoutMs, tls, token }: Connection,
  signal?: AbortSignal,
): Promise<ClusterConnection> {
  const { ControlClient: Client } = await import('../../net/control-client.js');
  const hello = { role: 'admin', ...(token === undefined ? {} : { token }) } as const;
  try {
    const client = await Client.open({
      ...{ address, trust: tls, timeoutMs, hello },
      ...(signal === undefined ? {} : { signal }),
    });
    return new ClusterConnection(client, timeoutMs);
  } catch (error) {
    throw error instanceof FarkvError ? asRefusal(error) : error;
  }
}

/** Throws the last server's error when none answers. */
export async function withCluster<T>(
  connection: Connection,
  use: (cluster: ClusterConnection) => Promise<T>,
): Promise<T> {
  let last: unknown;
  for (const address of connection.addresses) {
    let cluster: ClusterConnection;
    try {
      cluster = await openCluster(address, connection);
    } catch (error) {
      last = error;
      continue;
    }
    try {
      return await use(cluster);
    } finally {
      cluster.close();
    }
  }
  throw last;
}
