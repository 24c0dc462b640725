/**
 * A control plane on a port of its own over a metadata state that the test sets, and raw connections to it: for tests of
 * server/control.
 */
import { addon, type Ticket } from '../../native/addon.js';
import type { TicketSecret } from '../../native/data-plane.js';
import type { ExecutionContext } from 'ava';
import { connect, type Socket } from 'node:net';
import { EMPTY } from '../../core/metadata/reduce.js';
import type { MetadataState, Shard } from '../../core/metadata/state.js';
import { encodeFrame, FrameReader, SERVER_FRAME_LIMITS, type Frame, type Hello } from '../../core/protocol/index.js';
import { RecentAddresses } from '../../server/control/addresses.js';
import { Credentials } from '../../server/control/auth.js';
import { ControlPlane, type ControlPlaneOptions } from '../../server/control/control-plane.js';
import { Listener, type ListenerOptions } from '../../server/control/listener.js';
import { Log } from '../../server/log.js';

export const shard = (n: number, layoutEpoch = 1): Shard => ({
  shard: n,
  owner: 's1',
  worker: 0,
  epoch: 1,
  incarnation: '00'.repeat(8),
  layoutEpoch,
  buckets: 1,
  regions: [],
});
export const STATE: MetadataState = {
  ...EMPTY,
  clusterId: 'ab'.repeat(16),
  mapEpoch: 1,
  hashSeed: '01'.repeat(16),
  ticketSecret: '02'.repeat(16),
  voters: ['s1'],
  shards: [shard(0), shard(1)],
};

export const TENANTS = { ...STATE, tenants: [{ name: 'a', shards: 1 }] };
export const SECRET: TicketSecret = { number: 0, secret: Buffer.from(STATE.ticketSecret, 'hex') };

/** What the ticket says that the frame has. */
export const opened = (frame: Frame): Ticket | undefined =>
  'ticket' in frame ? addon.openTicket([SECRET], frame.ticket) : undefined;

export interface Rig {
  readonly address: string;
  readonly port: number;
  readonly plane: ControlPlane;
  readonly listener: Listener;
  setState: (state: MetadataState) => void;
}

export const CREDENTIALS = new Credentials({
  writer: { text: 'secret' },
  reader: { text: 'reading secret' },
  operator: { text: "operator's secret" },
  monitor: { text: "monitor's secret" },
  peer: { text: 'peer secret' },
  tenants: [
    { name: 'a', writer: { text: 'secret of a' }, reader: { text: 'reading secret of a' }, maxClients: 2 },
    { name: 'b', writer: { text: 'secret of b' } },
  ],
});
export const operator = (): Hello => hello({ role: 'admin', token: "operator's secret" });
export const PLACES = { strangers: 100, known: 100, isKnown: () => false } as const;

export async function rig(
  t: ExecutionContext,
  options: Partial<ControlPlaneOptions> = {},
  listening: Partial<ListenerOptions> = {},
): Promise<Rig> {
  let state = STATE;
  const plane = new ControlPlane({
    serverId: 's1',
    handshakeMs: 60_000,
    credentials: CREDENTIALS,
    maxConnections: 100,
    state: () => state,
    tickets: addon,
    call: (access, method) =>
      method === 'fail' ? Promise.reject(new Error('a secret detail')) : Promise.resolve({ access, method }),
    known: new RecentAddresses(10),
    log: new Log('error', () => undefined),
    ...options,
  });
  const listener = await Listener.open({
    addresses: [{ host: '127.0.0.1', port: 0 }],
    tls: undefined,
    places: PLACES,
    handshakeMs: 1000,
    connection: (socket, guest) => plane.accept(socket, guest),
    ...listening,
  });
  t.teardown(async () => {
    plane.close();
    await listener.close();
  });
  const port = listener.bound[0]!.port;
  return {
    address: `127.0.0.1:${port}`,
    port,
    plane,
    listener,
    setState: (next) => {
      state = next;
      plane.stateChanged();
    },
  };
}

/** A raw connection: frames in, frames out. */
export class Raw {
  readonly socket: Socket;
  readonly frames: Frame[] = [];
  closed = false;
  readonly #wake: (() => void)[] = [];

  constructor(t: Pick<ExecutionContext, 'teardown'>, port: number, localAddress = '127.0.0.1') {
    this.socket = connect({ port, host: '127.0.0.1', localAddress });
    const reader = new FrameReader(SERVER_FRAME_LIMITS);
    const changed = (): void => this.#wake.splice(0).forEach((wake) => wake());
    this.socket.on('data', (chunk: Buffer) => {
      reader.push(chunk, (frame) => this.frames.push(frame) > 0);
      changed();
    });
    this.socket.on('error', () => undefined);
    this.socket.on('close', () => {
      this.closed = true;
      changed();
    });
    t.teardown(() => this.socket.destroy());
  }

  say(...frames: Frame[]): this {
    for (const frame of frames) this.socket.write(encodeFrame(frame));
    return this;
  }

  async until(condition: () => boolean): Promise<void> {
    while (!condition()) await new Promise<void>((resolve) => this.#wake.push(resolve));
  }

  async got(count: number): Promise<Frame[]> {
    await this.until(() => this.frames.length >= count || this.closed);
    return this.frames;
  }
}

export const hello = (more: Partial<Hello> = {}): Hello => ({
  t: 'hello',
  magic: 'farkv',
  versions: [1, 1],
  role: 'client',
  token: 'secret',
  ...more,
});
