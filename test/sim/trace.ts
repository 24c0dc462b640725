/** What happened last, in words: kept only when a run is repeated to be read. */
import {
  formatConfiguration,
  decodeConfiguration,
  EntryType,
  type Entry,
  type RaftMessage,
  type Ready,
  type SnapshotMeta,
} from '../../core/raft/index.js';

export function formatEntry(entry: Entry): string {
  const { index, term, type, data } = entry;
  const config = type === EntryType.Config ? decodeConfiguration(data) : undefined;
  const what = config !== undefined ? ` [${formatConfiguration(config)}]` : data.length === 0 ? ' empty' : '';
  return `${index}/${term}${what}`;
}

function formatMeta({ index, term, config }: SnapshotMeta, part = ''): string {
  return `${index}/${term} ${part}[${formatConfiguration(config)}]`;
}

function formatEntries(entries: readonly Entry[]): string {
  const [first] = entries;
  const last = entries.at(-1);
  if (first === undefined || last === undefined) return 'no entries';
  return entries.length <= 2 ? entries.map(formatEntry).join(' ') : `${formatEntry(first)} .. ${formatEntry(last)}`;
}

/** `1->2 t3 append after 7/2 commit 6: 8/3`. */
export function formatMessage(m: RaftMessage): string {
  const head = `${m.from}->${m.to} t${m.term} ${m.type}`;
  switch (m.type) {
    case 'append':
      return `${head} after ${m.prevIndex}/${m.prevTerm} commit ${m.commit}: ${formatEntries(m.entries)}`;
    case 'append-accept':
      return `${head} ${m.index}`;
    case 'append-reject':
      return `${head} ${m.index}, hint ${m.hintIndex}/${m.hintTerm}`;
    case 'heartbeat':
      return `${head} commit ${m.commit} round ${m.round}`;
    case 'heartbeat-reply':
      return `${head} round ${m.round}`;
    case 'vote':
    case 'pre-vote':
      return `${head} log ${m.lastIndex}/${m.lastTerm}${m.transfer ? ' transfer' : ''}`;
    case 'vote-reply':
    case 'pre-vote-reply':
      return `${head} ${m.granted ? 'granted' : 'refused'}`;
    case 'snapshot-chunk':
      return `${head} ${formatMeta(m.snapshot, `bytes ${m.offset}+${m.chunk.length} of ${m.bytes} `)}`;
    case 'snapshot-reply':
      return `${head} ${m.index} has ${m.received}`;
    case 'read-index':
      return `${head} request ${m.request}`;
    case 'read-index-reply':
      return `${head} request ${m.request} index ${m.index}`;
    case 'timeout-now':
    case 'stale':
      return head;
  }
}

export function formatReady(ready: Ready): string {
  const parts: string[] = [];
  const { hardState, snapshot } = ready;
  if (hardState !== undefined) parts.push(`term ${hardState.term} vote ${hardState.vote} commit ${hardState.commit}`);
  if (snapshot !== undefined) parts.push(`snapshot ${formatMeta(snapshot.meta)}`);
  if (ready.entries.length > 0) parts.push(`persist ${formatEntries(ready.entries)}`);
  if (ready.committed.length > 0) parts.push(`apply ${formatEntries(ready.committed)}`);
  for (const { ctx, index } of ready.readStates) parts.push(`read ${ctx} at ${index}`);
  for (const ctx of ready.abortedReads) parts.push(`read ${ctx} given up`);
  return parts.join('; ');
}

export class Trace {
  #lines: string[] = [];
  #now: () => number = () => 0;

  constructor(private readonly keep: number) {}

  clock(now: () => number): void {
    this.#now = now;
  }

  note(text: string): void {
    this.#lines.push(`${(this.#now() / 1000).toFixed(3).padStart(12)} ms  ${text}`);
    if (this.#lines.length > 2 * this.keep) this.#lines = this.#lines.slice(-this.keep);
  }

  step(message: RaftMessage): void {
    this.note(formatMessage(message));
  }

  ready(id: number, ready: Ready): void {
    const text = formatReady(ready);
    if (text !== '') this.note(`   ${id}: ${text}`);
  }

  written(id: number): void {
    this.note(`   ${id}: the disk is done`);
  }

  toString(): string {
    return this.#lines.slice(-this.keep).join('\n');
  }
}
