/**
 * A configuration: who votes and who only learns. A value; config-change.ts says which may follow which.
 *
 *   voters     the voters, or in a joint configuration the voters to come
 *   outgoing   empty, or (joint) the voters that are being left: both majorities must agree
 *   learners   are sent the log and do not vote. In a joint configuration a learner may also be in `outgoing`: it still
 *              votes there, and stops voting when the joint configuration is left.
 *
 * Invariants: each list is sorted and without repeats; voters and learners share no member. An entry of type Config
 * carries the whole configuration, not a difference, so that the last such entry alone says what holds.
 */
export interface Configuration {
  readonly voters: readonly number[];
  readonly outgoing: readonly number[];
  readonly learners: readonly number[];
}

export const NO_CONFIGURATION: Configuration = { voters: [], outgoing: [], learners: [] };

const FORMAT = 1;
/**
 * A list longer than this is refused: no metadata group is this large, and it bounds what a hostile message can make us
 * do.
 */
const MEMBERS_MAX = 1024;

export function isMemberId(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value > 0;
}

export function isJoint(config: Configuration): boolean {
  return config.outgoing.length > 0;
}

export function isVoter(config: Configuration, id: number): boolean {
  return config.voters.includes(id) || config.outgoing.includes(id);
}

/** Everyone that the leader sends the log to, in ascending order. */
export function membersOf(config: Configuration): number[] {
  return [...new Set([...config.voters, ...config.outgoing, ...config.learners])].sort((a, b) => a - b);
}

/** `1,2,3 + outgoing 1,2 + learners 4`, for traces and logs. */
export function formatConfiguration(config: Configuration): string {
  const parts = [`voters ${config.voters.join(',') || 'none'}`];
  if (isJoint(config)) parts.push(`outgoing ${config.outgoing.join(',')}`);
  if (config.learners.length > 0) parts.push(`learners ${config.learners.join(',')}`);
  return parts.join(' + ');
}

function isMemberList(value: unknown): value is readonly number[] {
  if (!Array.isArray(value) || value.length > MEMBERS_MAX) return false;
  let previous = 0;
  for (const id of value as unknown[]) {
    if (!isMemberId(id) || id <= previous) return false;
    previous = id;
  }
  return true;
}

/** Whether a value from outside is a configuration in which somebody can agree. */
export function isConfiguration(value: unknown): value is Configuration {
  if (typeof value !== 'object' || value === null) return false;
  const { voters, outgoing, learners } = value as Record<string, unknown>;
  if (!isMemberList(voters) || !isMemberList(outgoing) || !isMemberList(learners)) return false;
  return voters.length > 0 && !learners.some((id) => voters.includes(id));
}

/**
 * Bytes of a configuration, little-endian:
 *   u8 format | for voters, outgoing, learners: u16 count, count x u64 member
 */
export function encodeConfiguration(config: Configuration): Uint8Array {
  const lists = [config.voters, config.outgoing, config.learners];
  const bytes = new Uint8Array(1 + lists.reduce((sum, list) => sum + 2 + 8 * list.length, 0));
  const view = new DataView(bytes.buffer);
  view.setUint8(0, FORMAT);
  let at = 1;
  for (const list of lists) {
    view.setUint16(at, list.length, true);
    at += 2;
    for (const id of list) {
      view.setUint32(at, id >>> 0, true);
      view.setUint32(at + 4, Math.floor(id / 2 ** 32), true);
      at += 8;
    }
  }
  return bytes;
}

/** The configuration in `bytes`, or undefined when they are not exactly one that isConfiguration accepts. */
export function decodeConfiguration(bytes: Uint8Array): Configuration | undefined {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (bytes.length < 1 || view.getUint8(0) !== FORMAT) return undefined;
  const lists: number[][] = [];
  let at = 1;
  for (let i = 0; i < 3; i++) {
    if (at + 2 > bytes.length) return undefined;
    const count = view.getUint16(at, true);
    at += 2;
    if (count > MEMBERS_MAX || at + 8 * count > bytes.length) return undefined;
    const list: number[] = [];
    for (let j = 0; j < count; j++, at += 8)
      list.push(view.getUint32(at + 4, true) * 2 ** 32 + view.getUint32(at, true));
    lists.push(list);
  }
  if (at !== bytes.length) return undefined;
  const config = { voters: lists[0], outgoing: lists[1], learners: lists[2] };
  return isConfiguration(config) ? config : undefined;
}
