/**
 * etcd: three nodes on loopback, each with its data on the disk of a given directory, and a client for PUTs.
 *
 * The client speaks gRPC over node:http2, as @grpc/grpc-js does, with a PutRequest written by hand: it does less per PUT
 * than any client from npm, so etcd is not measured through a slower one. All goes to the leader over one connection.
 * `etcdctl put` would start a process per PUT.
 */
import { once } from 'node:events';
import { connect, constants, type ClientHttp2Session } from 'node:http2';
import { join } from 'node:path';
import { freePorts } from '../../test/support/cluster.js';
import { startPeer, type Peer } from './peers.js';

const NODES = 3;
const PUT_PATH = '/etcdserverpb.KV/Put';
/** Fields 1 and 2 of PutRequest, of wire type 2. */
const [KEY_TAG, VALUE_TAG] = [0x0a, 0x12] as const;
const GRPC_HEAD = 5;
/** Room for answers that are on their way to 1,000 PUTs. */
const SESSION_MB = 64;

function varint(value: number): number[] {
  const bytes: number[] = [];
  let rest = value;
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) | 128);
  return [...bytes, rest];
}

/** A message of gRPC, not compressed: length, then the PutRequest. */
export function putMessage(key: string, value: Buffer): Buffer {
  const request = Buffer.concat([
    Buffer.from([KEY_TAG, ...varint(Buffer.byteLength(key))]),
    Buffer.from(key),
    Buffer.from([VALUE_TAG, ...varint(value.length)]),
    value,
  ]);
  const head = Buffer.alloc(GRPC_HEAD);
  head.writeUInt32BE(request.length, 1);
  return Buffer.concat([head, request]);
}

export class EtcdClient {
  readonly #session: ClientHttp2Session;

  private constructor(session: ClientHttp2Session) {
    this.#session = session;
  }

  static async open(port: number): Promise<EtcdClient> {
    const session = connect(`http://127.0.0.1:${port}`, { maxSessionMemory: SESSION_MB });
    await once(session, 'connect');
    return new EtcdClient(session);
  }

  put(key: string, value: Buffer): Promise<void> {
    return new Promise((resolve, reject) => {
      const stream = this.#session.request({
        [constants.HTTP2_HEADER_METHOD]: 'POST',
        [constants.HTTP2_HEADER_PATH]: PUT_PATH,
        [constants.HTTP2_HEADER_CONTENT_TYPE]: 'application/grpc',
        te: 'trailers',
      });
      let status: unknown;
      const ends = (headers: Readonly<Record<string, unknown>>): void => {
        status = headers['grpc-status'] ?? status;
      };
      stream.on('response', ends);
      stream.on('trailers', ends);
      stream.on('error', reject);
      stream.on('close', () => {
        if (status === '0') resolve();
        else reject(new Error(`etcd answered a put with gRPC status ${String(status)}`));
      });
      stream.resume();
      stream.end(putMessage(key, value));
    });
  }

  async close(): Promise<void> {
    if (this.#session.closed) return;
    this.#session.close();
    await once(this.#session, 'close');
  }
}

/** Whether the node that has this client port leads, by its gateway for JSON. */
async function leads(port: number): Promise<boolean> {
  const answer = await fetch(`http://127.0.0.1:${port}/v3/maintenance/status`, { method: 'POST', body: '{}' });
  const { header, leader } = (await answer.json()) as {
    readonly header?: { readonly member_id?: string };
    readonly leader?: string;
  };
  return leader !== undefined && leader === header?.member_id;
}

/** Three nodes, and a client of the one that leads. */
export async function openEtcd(
  directory: string,
  undo: (f: () => Promise<unknown>) => void,
): Promise<{ readonly client: EtcdClient; readonly nodes: readonly Peer[] }> {
  const peers = await freePorts(NODES);
  const urls = peers.map((port) => `http://127.0.0.1:${port}`);
  const starting = urls.map((url, i) =>
    startPeer('etcd', (port) => [
      '--name',
      `n${i + 1}`,
      '--data-dir',
      join(directory, `n${i + 1}`),
      '--listen-peer-urls',
      url,
      '--initial-advertise-peer-urls',
      url,
      '--initial-cluster',
      urls.map((one, n) => `n${n + 1}=${one}`).join(','),
      '--listen-client-urls',
      `http://127.0.0.1:${port}`,
      '--advertise-client-urls',
      `http://127.0.0.1:${port}`,
      '--logger',
      'zap',
      '--log-level',
      'error',
    ]).then((node) => {
      undo(() => node.stop());
      return node;
    }),
  );
  // Each that started is to be stopped, also where another did not.
  await Promise.allSettled(starting);
  const nodes = await Promise.all(starting);
  const leading = await Promise.all(nodes.map(({ port }) => leads(port)));
  const leader = nodes[leading.indexOf(true)];
  if (leader === undefined) throw new Error('no node of etcd leads');
  const client = await EtcdClient.open(leader.port);
  undo(() => client.close());
  return { client, nodes };
}
