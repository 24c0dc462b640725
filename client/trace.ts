/**
 * FARKV_TRACE=1: the steps of each call on standard error, for a person who wants to know where one operation spends its
 * time. A subscriber of the channel `farkv:call`, and the client's counters before and after: nothing is added to calls
 * of a process without it. Servers with FARKV_TRACE=1 write the requests that they are asked, under the same hash
 * (server/slow-lines.ts).
 *
 *   farkv trace: get, namespace 0, key 0f3a5c7e9b1d2f40 of 8 B, shard 3
 *     +0.021 ms  SDK: the call has returned
 *     +0.204 ms  native client: 1 READ of 192 B over tcp (the owner followed the index to the entry)
 *     +0.215 ms  SDK: ended, with a value of 5 B
 *
 * For one operation at a time: what others do meanwhile is counted with it. Not for keys and values: neither is written.
 */
import { tracingChannel } from 'node:diagnostics_channel';
import { writeSync } from 'node:fs';
import { types } from 'node:util';
import { knowCallers, type CallMessage } from './call-channel.js';
import type { Key } from './pending.js';
import type { ClientStats } from './transport.js';

export interface Traced {
  /** As the client's calls name it (callOf). */
  readonly caller: object;
  readonly stats: () => ClientStats;
  /** Undefined: this is no key. */
  readonly hashOf: (space: number, key: Key) => string | undefined;
  readonly shardOf: (space: number, key: Key) => number;
}

type Counts = Pick<
  ClientStats,
  | 'gets'
  | 'reads'
  | 'readBytes'
  | 'followedReads'
  | 'locationHits'
  | 'locationStale'
  | 'tornReads'
  | 'lateDiscards'
  | 'foreignReads'
  | 'twoSidedGets'
  | 'changes'
  | 'leaseRenewals'
>;
const NAMES: readonly (keyof Counts)[] = [
  'gets',
  'reads',
  'readBytes',
  'followedReads',
  'locationHits',
  'locationStale',
  'tornReads',
  'lateDiscards',
  'foreignReads',
  'twoSidedGets',
  'changes',
  'leaseRenewals',
];

interface Begun {
  readonly client: Traced;
  readonly atMs: number;
  readonly before: Counts;
  /** Its promise is not settled when the call returns. */
  pending: boolean;
}

const clients = new Map<object, Traced>();
let subscribed = false;

/** A program goes on where nobody reads what is written, and so does its trace: a line is left out. */
function toStandardError(text: string): void {
  try {
    writeSync(2, text);
  } catch {
    // EPIPE, EAGAIN: there is nobody to tell.
  }
}

/** Calls of this client are traced from now on, until it is closed. */
export function trace(client: Traced, write = toStandardError): void {
  clients.set(client.caller, client);
  if (subscribed) return;
  subscribed = true;
  const callerOf = knowCallers();
  const begun = new WeakMap<CallMessage, Begun>();
  const ended = (message: CallMessage): void => {
    const call = begun.get(message);
    if (call === undefined) return;
    begun.delete(message);
    write(lines(call, message).join(''));
  };
  tracingChannel<CallMessage, CallMessage>('farkv:call').subscribe({
    start: (message) => {
      const client = clients.get(callerOf(message) ?? message);
      if (client === undefined) return;
      write(`farkv trace: ${aboutOf(client, message)}\n`);
      begun.set(message, { client, atMs: performance.now(), before: client.stats(), pending: false });
    },
    end: (message) => {
      const call = begun.get(message);
      if (call === undefined) return;
      if ('result' in message || message.error !== undefined) {
        ended(message);
        return;
      }
      call.pending = true;
      write(step(call, 'SDK: the call has returned'));
    },
    asyncStart: () => undefined,
    asyncEnd: ended,
    error: () => undefined,
  });
}

export function traceNoMore(caller: object): void {
  clients.delete(caller);
}

function aboutOf(client: Traced, { call, namespace, key, keys }: CallMessage): string {
  const hash = key === undefined ? undefined : client.hashOf(namespace, key);
  const bytes = typeof key === 'string' ? Buffer.byteLength(key) : types.isUint8Array(key) ? key.byteLength : undefined;
  return [
    call,
    `namespace ${namespace}`,
    ...(hash === undefined || key === undefined
      ? []
      : [`key ${hash}${bytes === undefined ? '' : ` of ${bytes} B`}`, `shard ${client.shardOf(namespace, key)}`]),
    ...(keys === undefined ? [] : [`${keys} keys`]),
  ].join(', ');
}

const step = ({ atMs }: Begun, text: string): string => `  +${(performance.now() - atMs).toFixed(3)} ms  ${text}\n`;

function lines(call: Begun, message: CallMessage): string[] {
  const now = call.client.stats();
  const done = Object.fromEntries(NAMES.map((name) => [name, now[name] - call.before[name]])) as Record<
    keyof Counts,
    number
  >;
  return [
    ...nativeSteps(done, providersOf(now)).map((text) => step(call, `native client: ${text}`)),
    step(
      call,
      `SDK: ${message.error === undefined ? `ended, with ${resultOf(message.result)}` : failureOf(message.error)}`,
    ),
  ];
}

const many = (n: number, noun: string): string => `${n} ${noun}${n === 1 ? '' : 's'}`;

function nativeSteps(done: Counts, over: string): string[] {
  const steps: string[] = [];
  if (done.leaseRenewals > 0) steps.push(`${many(done.leaseRenewals, 'lease')} asked for`);
  if (done.locationHits > 0) steps.push('the location of the entry was known');
  if (done.locationStale > 0) steps.push('the known location of the entry was an old one');
  if (done.reads > 0)
    steps.push(
      `${many(done.reads, 'READ')} of ${done.readBytes} B over ${over}${done.followedReads > 0 ? ' (the owner followed the index to the entry)' : ''}`,
    );
  for (const [count, why] of [
    [done.tornReads, 'torn by a change'],
    [done.lateDiscards, 'late for the lease'],
    [done.foreignReads, 'of memory that is another one now'],
  ] as const)
    if (count > 0) steps.push(`${many(count, 'READ')} did not count, ${why}`);
  if (done.twoSidedGets > 0) steps.push(`the owner was asked over ${over}`);
  if (done.changes > 0) steps.push(`${many(done.changes, 'change')} sent to the owner over ${over}, and answered`);
  return steps;
}

function providersOf({ transports }: ClientStats): string {
  const used = transports.flatMap(({ provider, connected }) => (connected && provider !== undefined ? [provider] : []));
  return [...new Set(used)].join(', ');
}

function resultOf(result: unknown): string {
  if (result === undefined) return 'nothing';
  if (types.isUint8Array(result)) return `a value of ${result.byteLength} B`;
  return Array.isArray(result)
    ? `${result.length} values`
    : `${typeof result === 'object' ? 'an' : 'a'} ${typeof result}`;
}

function failureOf(error: unknown): string {
  const { code } = error as { readonly code?: unknown };
  return `failed, with ${typeof code === 'string' ? code : 'an error'}`;
}
