/**
 * The control port: what a stranger, a client or an operator may send. A welcome needs a token of its role; a client is
 * told of its tenant's shards alone; only operators' calls are answered, a monitor's for figures alone; an operator
 * beside goes on being answered.
 */
import { addon } from '../../native/addon.js';
import type { Frame, Hello } from '../../core/protocol/index.js';
import { checkOperatorCall } from '../../server/operator-calls.js';
import { RecentAddresses } from '../../server/control/addresses.js';
import { ControlPlane } from '../../server/control/control-plane.js';
import { Log } from '../../server/log.js';
import { CREDENTIALS, hello, operator, TENANTS } from '../support/control-rig.js';
import { FakeSocket, turn } from './fake-socket.js';
import { bytesOf, type Input } from './input.js';
import { must, type FuzzTarget, type Rig } from './target.js';

/** What each token opens: the role of a hello, and the shards or calls. */
const RIGHTS: Readonly<
  Record<string, { readonly role: Hello['role']; readonly shard?: number; readonly all?: boolean }>
> = {
  secret: { role: 'client', shard: 0 },
  'reading secret': { role: 'client', shard: 0 },
  'secret of a': { role: 'client', shard: 1 },
  'reading secret of a': { role: 'client', shard: 1 },
  "operator's secret": { role: 'admin', all: true },
  "monitor's secret": { role: 'admin' },
};
const CALLS = ['status', 'shard-plan', 'tickets-rotate'];
const call = (id: number, method: string, args: unknown = {}): Frame => ({ t: 'call', id, method, args });

const first: readonly Input[] = [
  ...Object.entries(RIGHTS).map(([token, { role }]): Input => [
    ['frame', hello({ role, token })],
    ['turn'],
    ...CALLS.map((method, id) => ['frame', call(id, method)] as const),
    ['frame', { t: 'ping', id: 1 }],
  ]),
  [
    ['frame', operator()],
    ['frame', call(1, 'member-add', { id: 's4', control: ['127.0.0.1:7400'] })],
    ['frame', call(2, 'drain', { id: 's1', draining: true })],
    ['frame', call(3, 'shard-move', { shard: 1, to: 's2' })],
    ['frame', call(4, 'tickets-revoke', { client: '00'.repeat(8) })],
    ['frame', call(5, 'member-remove', { id: 's4' })],
  ],
  [['frame', hello({ role: 'peer', token: 'peer secret', from: 's2' })]],
  [['frame', hello({ ticket: new Uint8Array(40) })]],
];

/** The hello that a connection began with, as far as rights go. */
function shown(input: Input): { readonly token?: unknown; readonly role?: unknown } {
  const [step] = input.filter(([kind]) => kind !== 'turn');
  return step?.[0] === 'frame' && typeof step[1] === 'object' && step[1] !== null ? step[1] : {};
}

function judge(input: Input, frames: readonly Frame[]): void {
  const [welcome] = frames;
  const { token, role } = shown(input);
  const isWelcome = welcome?.t === 'welcome' && welcome.ok;
  // A hello in pieces or of bytes is looked at by its effect alone: it has rights of some token.
  const known = typeof token === 'string' && Object.hasOwn(RIGHTS, token) ? RIGHTS[token] : undefined;
  const whole = input.find(([kind]) => kind !== 'turn')?.[0] === 'frame';
  if (isWelcome && whole) must(known !== undefined && known.role === role, 'a welcome without a token of the role');
  for (const frame of frames) {
    if (frame.t === 'map' && whole)
      must(
        frame.map.shards.every((s) => s.shard === known?.shard),
        "another tenant's shards in a map",
      );
    if (frame.t !== 'answer' || !frame.ok) continue;
    must(isWelcome, 'a call is answered before a welcome');
    if (whole) must(known?.role === 'admin', 'a call of a client is answered');
    if (whole && known?.all !== true) must(frame.result === 'figures', 'a monitor changes something');
  }
}

function open(): Rig {
  const faults: string[] = [];
  const plane = new ControlPlane({
    serverId: 's1',
    handshakeMs: 3_600_000,
    credentials: CREDENTIALS,
    maxConnections: 100,
    state: () => TENANTS,
    tickets: addon,
    call: async (caller, method, args) => {
      await Promise.resolve();
      checkOperatorCall(caller, method, args);
      return method === 'status' ? 'figures' : 'done';
    },
    known: new RecentAddresses(10),
    log: new Log('error', (level, text) => {
      if (level === 'error') faults.push(text);
    }),
  });
  let sources = 0;
  const visit = (): FakeSocket => {
    const socket = new FakeSocket();
    // Each from an address of its own: guesses are slowed by address.
    plane.accept(socket.socket, { source: `source ${++sources}`, admitted: () => undefined });
    return socket;
  };
  const honest = visit();
  honest.send(bytesOf(['frame', operator()])!);
  let asked = 0;
  return {
    run: async (input) => {
      const socket = visit();
      for (const step of input) {
        const bytes = bytesOf(step);
        if (bytes === undefined) await turn();
        else socket.send(bytes);
      }
      const before = honest.frames.length;
      honest.send(bytesOf(['frame', call(++asked, 'status')])!);
      await turn();
      must(honest.frames.length > before, 'an honest operator is not answered');
      judge(input, socket.frames);
      socket.end();
      await turn();
      must(socket.closed && plane.clients === 0, 'a connection that has ended is still counted');
      must(faults.length === 0, faults.join('; '));
    },
    close: async () => {
      honest.end();
      plane.close();
      await turn();
    },
  };
}

export const control: FuzzTarget = { name: 'control', first, open: () => Promise.resolve(open()) };
