/**
 * The peers' port, with Raft and the metadata behind it. Without a peer's token no message and no call gets further; a
 * joiner's messages do not either. No message stops a member: one that breaks Raft's rules ends its connection.
 */
import { FarkvError } from '../../core/errors.js';
import { decodeProposal, encodeProposal } from '../../core/metadata/commands.js';
import { MetadataMachine } from '../../core/metadata/machine.js';
import { EMPTY } from '../../core/metadata/reduce.js';
import type { Hello } from '../../core/protocol/index.js';
import { bootstrapState, checkRaftMessage, EntryType, ImplausibleMessage, RaftNode } from '../../core/raft/index.js';
import { RecentAddresses } from '../../server/control/addresses.js';
import { PeerPlane } from '../../server/control/peer-plane.js';
import { Log } from '../../server/log.js';
import { checkJoinRequest } from '../../server/metadata/join.js';
import { checkLeaseRequest } from '../../server/metadata/lease-grantor.js';
import { CREDENTIALS, hello } from '../support/control-rig.js';
import { bootstrapOf } from '../support/metadata-log.js';
import { FakeSocket, turn } from './fake-socket.js';
import { bytesOf, type Input } from './input.js';
import { must, type FuzzTarget, type Rig } from './target.js';

const peer = (more: Partial<Hello> = {}): Hello =>
  hello({ role: 'peer', token: 'peer secret', from: 's2', instance: '0a'.repeat(8), ...more });
const proposal = encodeProposal({ proposer: 'aa'.repeat(8), sequence: 1, command: bootstrapOf(4, ['s1', 's2', 's3']) });
const entry = (index: number, term: number, data = proposal): unknown => ({
  index,
  term,
  type: EntryType.Normal,
  data,
});
const to1 = { from: 2, to: 1, term: 2 };
const MESSAGES: readonly unknown[] = [
  { type: 'append', ...to1, prevIndex: 1, prevTerm: 1, commit: 2, entries: [entry(2, 2), entry(3, 2)] },
  { type: 'append-accept', ...to1, index: 1 },
  { type: 'append-reject', ...to1, index: 1, hintIndex: 0, hintTerm: 0 },
  { type: 'heartbeat', ...to1, commit: 1, round: 1 },
  { type: 'heartbeat-reply', ...to1, round: 1 },
  { type: 'vote', ...to1, lastIndex: 1, lastTerm: 1, transfer: false },
  { type: 'pre-vote', ...to1, lastIndex: 1, lastTerm: 1, transfer: true },
  { type: 'vote-reply', ...to1, granted: true },
  { type: 'pre-vote-reply', ...to1, granted: true },
  {
    type: 'snapshot-chunk',
    ...to1,
    snapshot: { index: 5, term: 2, config: { voters: [1, 2, 3], outgoing: [], learners: [] } },
    bytes: 4,
    offset: 0,
    chunk: new Uint8Array(4),
  },
  { type: 'snapshot-reply', ...to1, index: 1, received: 0 },
  { type: 'read-index', ...to1, incarnation: 1, request: 1 },
  { type: 'read-index-reply', ...to1, incarnation: 1, request: 1, index: 1 },
  { type: 'timeout-now', ...to1 },
  { type: 'stale', ...to1 },
];
const lease = { incarnation: '01'.repeat(8), knows: 1, end: false };
const joining = { instance: '0a'.repeat(8), control: ['127.0.0.1:7400'], peer: ['127.0.0.1:9400'] };

const first: readonly Input[] = [
  ...MESSAGES.map((message): Input => [
    ['frame', peer()],
    ['frame', { t: 'raft', message }],
  ]),
  [['frame', peer()], ['turn'], ...MESSAGES.map((message) => ['frame', { t: 'raft', message }] as const)],
  [
    ['frame', peer()],
    ['frame', { t: 'call', id: 1, method: 'propose', args: { bytes: proposal } }],
    ['frame', { t: 'call', id: 2, method: 'lease', args: lease }],
    ['frame', { t: 'ping', id: 3 }],
  ],
  [
    ['frame', peer({ join: true, from: 's9' })],
    ['frame', { t: 'call', id: 1, method: 'join', args: joining }],
    ['frame', { t: 'raft', message: MESSAGES[0] }],
  ],
  [['frame', hello()]],
];

/** A member of three, and the metadata that it applies. */
class Member {
  #node = this.#fresh();
  #machine = new MetadataMachine();

  #fresh(): RaftNode {
    return new RaftNode({ id: 1, incarnation: 1, random: () => 0 }, bootstrapState([1, 2, 3]));
  }

  reset(): void {
    this.#node = this.#fresh();
    this.#machine = new MetadataMachine();
  }

  /** Throws ERR_PROTOCOL for what is no message. */
  receive(value: unknown): void {
    const checked = checkRaftMessage(value);
    if (!checked.ok) throw new FarkvError('ERR_PROTOCOL', checked.why);
    must(checkRaftMessage(checked.message).ok, 'a checked message does not pass its check');
    if (checked.message.to !== 1) return;
    try {
      this.#node.step(checked.message);
      this.#work();
    } catch (error) {
      if (!(error instanceof ImplausibleMessage)) throw error;
      throw new FarkvError('ERR_PROTOCOL', error.message);
    }
  }

  #work(): void {
    for (let rounds = 0; this.#node.hasReady(); rounds++) {
      must(rounds < 1000, 'a member does not come to rest');
      const ready = this.#node.ready();
      for (const { type, data } of ready.committed) if (type === EntryType.Normal && data.length > 0) this.#apply(data);
      this.#node.advance();
    }
  }

  #apply(data: Uint8Array): void {
    try {
      this.#machine.apply(data);
    } catch (error) {
      if (!(error instanceof FarkvError)) throw error;
    }
  }
}

function open(): Rig {
  const faults: string[] = [];
  const member = new Member();
  let mayCome = false;
  let joins = false;
  const plane = new PeerPlane({
    serverId: 's1',
    instance: '0b'.repeat(8),
    handshakeMs: 3_600_000,
    credentials: CREDENTIALS,
    state: () => EMPTY,
    arrives: ({ token, join }) => {
      must(token === 'peer secret', "a hello without a peer's token is examined");
      mayCome = true;
      joins = join === true;
    },
    message: (_from, message) => {
      must(mayCome && !joins, 'a message of one that is no peer');
      member.receive(message);
    },
    call: async (_access, method, args) => {
      await Promise.resolve();
      must(mayCome, 'a call of one that is no peer');
      if (method === 'propose')
        decodeProposal((args as { readonly bytes: Uint8Array } | null)?.bytes ?? new Uint8Array(0));
      else if (method === 'lease') checkLeaseRequest(args, 'lease');
      else if (method === 'join') checkJoinRequest(args, 'join');
      else throw new FarkvError('ERR_ARGUMENT', 'no such call');
      return {};
    },
    known: new RecentAddresses(10),
    log: new Log('error', (level, text) => {
      if (level === 'error') faults.push(text);
    }),
  });
  let sources = 0;
  return {
    run: async (input) => {
      member.reset();
      mayCome = joins = false;
      const socket = new FakeSocket();
      plane.accept(socket.socket, { source: `source ${++sources}`, admitted: () => undefined });
      for (const step of input) {
        const bytes = bytesOf(step);
        if (bytes === undefined) await turn();
        else socket.send(bytes);
      }
      await turn();
      socket.end();
      await turn();
      must(socket.closed, 'a connection does not end');
      must(faults.length === 0, faults.join('; '));
    },
    close: () => Promise.resolve(),
  };
}

export const peers: FuzzTarget = { name: 'peers', first, open: () => Promise.resolve(open()) };
