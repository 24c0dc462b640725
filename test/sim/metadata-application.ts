/**
 * The metadata's own state machine under the simulator: servers start and restart, leave, are given shards and open
 * them; commands are repeated as after an answer that was lost, and come too late. What the commands mean is tested
 * beside core/metadata; here the machines of all members must agree after every entry, snapshot and restart.
 */
import { encodeProposal, type Command, type Proposal } from '../../core/metadata/commands.js';
import { FORMAT_NEWEST } from '../../core/metadata/format.js';
import { MetadataMachine } from '../../core/metadata/machine.js';
import type { MetadataState } from '../../core/metadata/state.js';
import type { Random } from '../support/random.js';
import { NUMBER_BYTES, type Application, type Machine } from './machine.js';
import type { Mistake } from './mistakes.js';

const SHARDS = 8;
const SERVERS = ['s1', 's2', 's3', 's4'];
const hex = (value: number, digits: number): string => value.toString(16).padStart(digits, '0');

export class MetadataModel implements Machine {
  #machine: MetadataMachine;
  /** Called for each entry. */
  heard: ((proposal: Proposal, before: MetadataState, after: MetadataState) => void) | undefined;
  /** Proposers of late whose command was applied in this life; for whoever waits for an outcome. */
  readonly #seen = new Set<string>();
  /** Chained over the outcome of every command and the map epoch after it. */
  #digest = 1;

  constructor(private readonly known = FORMAT_NEWEST) {
    this.#machine = new MetadataMachine(known);
  }

  apply(index: number, data: Uint8Array): void {
    const before = this.state;
    const { outcome, proposal } = this.#machine.apply(data.subarray(NUMBER_BYTES));
    this.#seen.add(proposal.proposer);
    const said = outcome === 'duplicate' ? outcome : outcome.ok ? 'ok' : outcome.code;
    let hash = this.#digest ^ index ^ this.#machine.state.mapEpoch;
    for (let i = 0; i < said.length; i++) hash = Math.imul(hash ^ said.charCodeAt(i), 0x01000193);
    this.#digest = (hash ^ (hash >>> 15)) >>> 0;
    this.heard?.(proposal, before, this.state);
  }

  get state(): MetadataState {
    return this.#machine.state;
  }

  applied(proposer: string): boolean {
    return this.#seen.has(proposer);
  }

  snapshot(): Uint8Array {
    const state = this.#machine.snapshot();
    const bytes = new Uint8Array(4 + state.length);
    new DataView(bytes.buffer).setUint32(0, this.#digest);
    bytes.set(state, 4);
    return bytes;
  }

  restore(bytes: Uint8Array): void {
    this.#digest = new DataView(bytes.buffer, bytes.byteOffset).getUint32(0);
    this.#machine = new MetadataMachine(this.known);
    this.#machine.restore(bytes.subarray(4));
    const again = this.snapshot();
    if (again.length !== bytes.length || !again.every((byte, i) => byte === bytes[i]))
      throw new Error('a snapshot of what a snapshot restored differs from it');
  }

  digest(): number {
    return this.#digest;
  }
}

/** Proposals of one history. It keeps what it proposed last, to repeat it. */
class Commands {
  #sequence = 0;
  #started = 0;
  readonly #incarnations = new Map<string, number>();
  readonly #sent: Uint8Array[] = [];

  next(random: Random): Uint8Array {
    if (this.#sent.length > 0 && random.below(6) === 0) return random.pick(this.#sent);
    const bytes = encodeProposal({
      proposer: hex(1 + (this.#sequence % 3), 16),
      sequence: 1 + Math.floor(this.#sequence / 3),
      command: this.#command(random),
    });
    this.#sequence++;
    this.#sent.push(bytes);
    if (this.#sent.length > 40) this.#sent.shift();
    return bytes;
  }

  #command(random: Random): Command {
    if (this.#sequence === 0 || random.below(200) === 0) {
      return {
        t: 'bootstrap',
        clusterId: hex(7, 32),
        hashSeed: hex(8, 32),
        ticketSecret: hex(9, 32),
        shards: SHARDS,
        voters: SERVERS,
        votersMax: 3,
        ownerLease: { leaseMs: 100, driftPpm: 1000 },
      };
    }
    const id = random.pick(SERVERS);
    const incarnation = this.#incarnations.get(id);
    switch (random.below(6)) {
      case 0:
        return this.#join(id, incarnation);
      case 1:
        return { t: 'assign-shards' };
      case 2:
      case 3:
        return { t: 'no-op' };
      default:
        return {
          t: 'shard-opened',
          shard: random.below(SHARDS),
          owner: id,
          memberIncarnation: hex(incarnation ?? 1, 16),
          epoch: 1 + random.below(4),
          incarnation: hex(random.next(), 16),
          layoutEpoch: 1,
          buckets: 64,
          regions: [
            {
              provider: 'shm',
              kind: 'heap',
              segment: 0,
              tag: 1,
              bytes: 4096,
              remoteAddress: '4096',
              rkey: String(random.next()),
            },
          ],
        };
    }
  }

  #join(id: string, replaced: number | undefined): Command {
    const incarnation = ++this.#started;
    this.#incarnations.set(id, incarnation);
    return {
      t: 'member-join',
      id,
      incarnation: hex(incarnation, 16),
      ...(replaced === undefined ? {} : { replaces: hex(replaced, 16) }),
      instance: hex(id.charCodeAt(1), 16),
      control: ['127.0.0.1:7400'],
      fabric: [{ provider: 'tcp', address: '127.0.0.1:7500', worker: 0 }],
      memoryBytes: 1 << 30,
    };
  }
}

export function metadataApplication(): Application {
  const commands = new Commands();
  return { machine: () => new MetadataModel(), command: (random) => commands.next(random) };
}

/** The members are owners of shards (owners.ts), whose commands are the only ones that matter. */
export function ownersApplication(mistake?: Mistake): Application {
  let sequence = 0;
  const command = (): Uint8Array =>
    encodeProposal({ proposer: hex(1, 16), sequence: ++sequence, command: { t: 'no-op' } });
  return { machine: () => new MetadataModel(), command, owners: { mistake } };
}

/** The same of shards with copies (owner-copies.ts). */
export function replicasApplication(mistake?: Mistake): Application {
  return { ...ownersApplication(mistake), owners: { mistake, replicated: true } };
}
