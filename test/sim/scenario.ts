/**
 * Clusters driven by text: each block of a trace is a command, a line `----` and what came of it. scenario.test.ts
 * holds the traces in
 * traces/ against the code; FARKV_REWRITE_TRACES=1 writes what comes now, to be reviewed as a change of text.
 *
 * Members are the real core over a disk that is a plain object; after every command each member does what its Ready
 * asks for, unless it is held, and messages lie in the network until a command delivers them. So a trace decides every
 * order of events itself.
 *
 *   cluster 1 2 3 [messageBytes=N]   a group with these first voters          join 4        an empty member
 *   tick ID N       campaign ID      propose ID TEXT      read ID CTX         transfer ID TO
 *   change ID +4 ~5 -1 [joint]       make a voter, make a learner, remove
 *   gone ID LEADER                   a hint to ID that LEADER has ended
 *   deliver [A->B] [TYPE]            delivers what is in the network now      drop [A->B] [TYPE]
 *   keep NAME [A->B] [TYPE]          takes messages aside                     again NAME    puts copies of them back
 *   stabilize [IDS]                  delivers among these (or all) until nothing moves; messages to others stay
 *   hold ID         release ID       its Ready waits                          full ID       room ID
 *   crash ID        restart ID       compact ID KEEP      status [IDS]        log ID        network
 * A command that begins with `quietly` prints nothing.
 */
import {
  bootstrapState,
  emptyState,
  EntryType,
  formatConfiguration,
  RaftNode,
  type Entry,
  type MemberChange,
  type RaftMessage,
  type Ready,
  type RestoredState,
} from '../../core/raft/index.js';
import { formatEntry, formatMessage, formatReady } from './trace.js';

const NAMES = { '+': 'voter', '~': 'learner', '-': 'remove' } as const;

class ScenarioMember {
  node: RaftNode | undefined;
  held = false;
  full = false;
  applied: string[] = [];
  #starts = 0;

  constructor(
    readonly id: number,
    private disk: RestoredState,
    private readonly messageBytes: number,
  ) {
    this.start();
  }

  start(): void {
    this.#starts++;
    // No chance: the election time-out is always the same 10 ticks and a few, by member.
    const options = {
      id: this.id,
      incarnation: this.#starts,
      random: () => this.id / 10,
      maxMessageBytes: this.messageBytes,
      snapshotChunkBytes: 8,
    };
    this.node = new RaftNode(options, this.disk);
    this.applied = this.disk.snapshot === undefined ? [] : [new TextDecoder().decode(this.disk.snapshot.data)];
  }

  /** Persists, applies, and tells what is to be sent. */
  work(node: RaftNode, ready: Ready): readonly RaftMessage[] {
    const refuses = this.full && (ready.entries.length > 0 || ready.snapshot !== undefined);
    this.#persist(ready, !refuses);
    if (!refuses && ready.snapshot !== undefined) this.applied = [new TextDecoder().decode(ready.snapshot.data)];
    for (const { type, data } of ready.committed)
      if (type === EntryType.Normal && data.length > 0) this.applied.push(new TextDecoder().decode(data));
    if (refuses) node.storageRefused();
    else node.advance();
    return refuses ? ready.early : [...ready.early, ...ready.messages];
  }

  #persist(ready: Ready, room: boolean): void {
    const { snapshot = ready.snapshot, entries } = this.disk;
    const first = ready.entries[0]?.index ?? Infinity;
    const kept = ready.snapshot === undefined ? entries.filter(({ index }) => index < first) : [];
    const log: readonly Entry[] = room ? [...kept, ...ready.entries] : entries;
    const hardState = ready.hardState ?? this.disk.hardState;
    const last = log.at(-1)?.index ?? snapshot?.meta.index ?? 0;
    this.disk = {
      hardState: { ...hardState, commit: Math.min(hardState.commit, last) },
      snapshot: room ? (ready.snapshot ?? snapshot) : this.disk.snapshot,
      entries: log,
    };
  }

  compact(keep: number): string {
    const meta = this.node?.snapshotMeta();
    if (meta === undefined || this.node === undefined) return 'nothing to compact';
    const snapshot = { meta, data: new TextEncoder().encode(this.applied.join(' ')) };
    this.disk = { ...this.disk, snapshot, entries: this.disk.entries.filter(({ index }) => index > meta.index) };
    this.node.compact(snapshot, keep);
    return `snapshot ${meta.index}/${meta.term} [${formatConfiguration(meta.config)}]`;
  }

  status(): string {
    if (this.node === undefined) return `${this.id}: down`;
    const { role, term, leader, commit, lastIndex, config, configCommitted, storageFull } = this.node.status();
    const inForce = `${formatConfiguration(config)}${configCommitted ? '' : ', uncommitted'}`;
    const said = [`${this.id}: ${role} t${term} leader ${leader} commit ${commit} last ${lastIndex} [${inForce}]`];
    if (storageFull) said.push('no room');
    if (this.applied.length > 0) said.push(`applied: ${this.applied.join(' ')}`);
    return said.join('; ');
  }

  log(): string {
    const { node } = this;
    if (node === undefined) return 'down';
    const lines: string[] = [];
    for (let index = node.status().firstIndex; index <= node.lastIndex; index++) {
      const entry = node.entryAt(index);
      if (entry !== undefined)
        lines.push(
          formatEntry(entry) +
            (entry.type === EntryType.Normal && entry.data.length > 0
              ? ` ${new TextDecoder().decode(entry.data)}`
              : ''),
        );
    }
    return lines.join('\n');
  }
}

export class Scenario {
  readonly #members = new Map<number, ScenarioMember>();
  #network: RaftMessage[] = [];
  readonly #kept = new Map<string, RaftMessage[]>();
  #messageBytes = 1 << 20;
  #lines: string[] = [];

  /** What comes of one command. */
  run(line: string): string {
    this.#lines = [];
    const quiet = line.startsWith('quietly ');
    const [command = '', ...args] = (quiet ? line.slice(8) : line).split(' ');
    this.#command(command, args);
    this.#settle();
    return quiet ? '' : this.#lines.join('\n');
  }

  #command(command: string, args: string[]): void {
    const id = Number(args[0]);
    switch (command) {
      case 'cluster':
        this.#messageBytes = Number(
          args.find((arg) => arg.startsWith('messageBytes='))?.slice(13) ?? this.#messageBytes,
        );
        args = args.filter((arg) => !arg.includes('='));
        for (const voter of args.map(Number))
          this.#members.set(voter, new ScenarioMember(voter, bootstrapState(args.map(Number)), this.#messageBytes));
        return;
      case 'join':
        this.#members.set(id, new ScenarioMember(id, emptyState(), this.#messageBytes));
        return;
      case 'tick':
        for (let i = 0; i < Number(args[1]); i++) {
          this.#node(id).tick();
          this.#settle();
        }
        return;
      case 'campaign':
        this.#node(id).campaign();
        return;
      case 'gone':
        this.#node(id).leaderGone(Number(args[1]));
        return;
      case 'propose': {
        const result = this.#node(id).propose(new TextEncoder().encode(args.slice(1).join(' ')));
        this.#say(result.ok ? `${result.index}/${result.term}` : `refused: ${result.reason}`);
        return;
      }
      case 'change': {
        const changes = args
          .slice(1)
          .filter((arg) => arg !== 'joint')
          .map((arg): MemberChange => ({ kind: NAMES[arg[0] as '+'], id: Number(arg.slice(1)) }));
        const result = this.#node(id).proposeChange({ changes, joint: args.includes('joint') });
        this.#say(result.ok ? `${result.index}/${result.term}` : `refused: ${result.reason}`);
        return;
      }
      case 'read':
        this.#say(this.#node(id).readIndex(Number(args[1])) ?? 'asked');
        return;
      case 'transfer':
        this.#say(this.#node(id).transferLeadership(Number(args[1])) ?? 'begun');
        return;
      case 'deliver':
        for (const message of this.#take(args)) this.#deliver(message);
        return;
      case 'drop':
        for (const message of this.#take(args)) this.#say(`lost: ${formatMessage(message)}`);
        return;
      case 'keep':
        this.#kept.set(args[0] ?? '', this.#take(args.slice(1)));
        for (const message of this.#kept.get(args[0] ?? '') ?? []) this.#say(`kept: ${formatMessage(message)}`);
        return;
      case 'again':
        this.#network.push(...(this.#kept.get(args[0] ?? '') ?? []));
        return;
      case 'stabilize':
        this.#stabilize(args.map(Number));
        return;
      case 'hold':
      case 'release':
        this.#member(id).held = command === 'hold';
        return;
      case 'full':
        this.#member(id).full = true;
        return;
      case 'room':
        this.#member(id).full = false;
        this.#node(id).retryStorage();
        return;
      case 'crash':
        this.#member(id).node = undefined;
        this.#member(id).held = false;
        return;
      case 'restart':
        this.#member(id).start();
        return;
      case 'compact':
        this.#say(this.#member(id).compact(Number(args[1])));
        return;
      case 'status':
        for (const member of args.length > 0 ? args.map((arg) => this.#member(Number(arg))) : this.#members.values())
          this.#say(member.status());
        return;
      case 'log':
        this.#say(this.#member(id).log());
        return;
      case 'network':
        for (const message of this.#network) this.#say(formatMessage(message));
        return;
      default:
        throw new Error(`unknown command ${command}`);
    }
  }

  #stabilize(ids: number[]): void {
    const among = (id: number) => ids.length === 0 || ids.includes(id);
    for (let round = 0; round < 1000; round++) {
      this.#settle();
      const moving = this.#network.filter(({ from, to }) => among(from) && among(to));
      if (moving.length === 0) return;
      this.#network = this.#network.filter((message) => !moving.includes(message));
      for (const message of moving) this.#deliver(message);
    }
    throw new Error('it does not come to rest');
  }

  #deliver(message: RaftMessage): void {
    this.#say(formatMessage(message));
    this.#members.get(message.to)?.node?.step(message);
    this.#settle();
  }

  /** Removes and returns the messages that `A->B` and a type select. */
  #take(pattern: string[]): RaftMessage[] {
    const matches = (m: RaftMessage) =>
      pattern.every((part) =>
        part.includes('->')
          ? `${m.from}->${m.to}` === part || (part.startsWith('*') ? `*->${m.to}` : `${m.from}->*`) === part
          : m.type === part,
      );
    const taken = this.#network.filter(matches);
    this.#network = this.#network.filter((message) => !taken.includes(message));
    return taken;
  }

  #settle(): void {
    for (const member of this.#members.values()) {
      while (member.node !== undefined && !member.held && member.node.hasReady()) {
        const ready = member.node.ready();
        const text = formatReady(ready);
        if (text !== '') this.#say(`  ${member.id}: ${text}`);
        this.#network.push(...member.work(member.node, ready));
      }
    }
  }

  #member(id: number): ScenarioMember {
    const member = this.#members.get(id);
    if (member === undefined) throw new Error(`there is no member ${id}`);
    return member;
  }

  #node(id: number): RaftNode {
    const { node } = this.#member(id);
    if (node === undefined) throw new Error(`${id} is down`);
    return node;
  }

  #say(line: string): void {
    this.#lines.push(line);
  }
}

/** Runs a whole trace and returns it as it should read. */
export function runTrace(text: string): string {
  const scenario = new Scenario();
  const out: string[] = [];
  for (const block of text.trimEnd().split(/\n\n+/)) {
    const lines = block.split('\n');
    const end = lines.indexOf('----');
    const input = end < 0 ? lines : lines.slice(0, end);
    const commands = input.filter((line) => line !== '' && !line.startsWith('#'));
    const results = commands.flatMap((line) => {
      const result = scenario.run(line);
      return result === '' ? [] : [...(commands.length > 1 ? [`> ${line}`] : []), result];
    });
    if (input.every((line) => line.startsWith('#'))) out.push(input.join('\n'));
    else out.push([...input, '----', ...(results.length > 0 ? results : ['(nothing)'])].join('\n'));
  }
  return out.join('\n\n') + '\n';
}
