/**
 * What has happened in the cluster, for the page: a line each, newest last. It is read off two states of the metadata,
 * or two statuses. The last MOST are kept. Not for: shards that have other owners (owner-news.ts).
 */
import type { MetadataState } from '../../core/metadata/state.js';
import type { ClusterStatus } from '../status.js';
import { shardsText } from './owner-news.js';

export interface Happening {
  /** Rises by one each. */
  readonly number: number;
  /** By this server's wall clock, milliseconds since 1970. */
  readonly atMs: number;
  readonly text: string;
}

const MOST = 200;

/** Of the metadata: moves, shards without an owner, servers that come, go, start again or are drained. */
export function changesOf(before: MetadataState, after: MetadataState): string[] {
  const lines: string[] = [];
  for (const [id, { incarnation }] of after.members) {
    const known = before.members.get(id);
    if (known === undefined) lines.push(`${id} has joined`);
    else if (known.incarnation !== incarnation) lines.push(`${id} has started again`);
  }
  for (const { id } of before.servers)
    if (!after.servers.some((server) => server.id === id)) lines.push(`${id} was removed from the cluster`);
  for (const { id, draining } of after.servers)
    if (draining !== (before.servers.find((server) => server.id === id)?.draining ?? false))
      lines.push(draining ? `${id} is being drained` : `${id} is not drained any more`);
  const left = new Map<string, number[]>();
  for (const { shard, owner } of after.shards) {
    const previous = before.shards[shard]?.owner;
    if (owner === undefined && previous !== undefined) left.set(previous, [...(left.get(previous) ?? []), shard]);
  }
  for (const [previous, shards] of left) lines.push(`without an owner; ${previous} had ${shardsText(shards)}`);
  const began = new Map<string, number[]>();
  const planned = new Set(before.moves.map((move) => `${move.shard} ${move.planned}`));
  for (const { shard, to, planned: at } of after.moves)
    if (!planned.has(`${shard} ${at}`)) began.set(to, [...(began.get(to) ?? []), shard]);
  for (const [to, shards] of began) lines.push(`a move to ${to} has begun: ${shardsText(shards)}`);
  return lines;
}

/** Of two statuses: leaders, and servers that stop answering. */
export function turnsOf(before: ClusterStatus | undefined, after: ClusterStatus): string[] {
  if (before === undefined) return [];
  const lines: string[] = [];
  if (before.leader !== after.leader)
    lines.push(after.leader === undefined ? 'no server leads' : `${after.leader} leads, in term ${after.term}`);
  for (const { id, state } of after.members) {
    const was = before.members.find((member) => member.id === id)?.state;
    if (state === 'unreachable' && was === 'up') lines.push(`${id} does not answer`);
    if (state === 'up' && was === 'unreachable') lines.push(`${id} answers again`);
  }
  return lines;
}

export class Happenings {
  readonly #nowMs: () => number;
  #all: Happening[] = [];
  #number = 0;

  constructor(nowMs: () => number = () => Date.now()) {
    this.#nowMs = nowMs;
  }

  add(lines: readonly string[], atMs = this.#nowMs()): void {
    for (const text of lines) this.#all.push({ number: ++this.#number, atMs, text });
    this.#all = this.#all.slice(-MOST);
  }

  /** Those with a higher number. */
  after(number: number): readonly Happening[] {
    return this.#all.filter((one) => one.number > number);
  }
}
