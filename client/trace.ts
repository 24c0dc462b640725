/**
 * FARKV_TRACE=1: the steps of each call on standard error, for a person who wants to know where one operation spends its
 * time. A subscriber of the channel `farkv:call`, the steps of the native client (native/client/session/steps.h), and its
 * counters before and after: nothing is added to calls of a process without it. Servers with FARKV_TRACE=1 write the
 * requests that they are asked, under the same hash (server/slow-lines.ts).
 *
 *   farkv trace: get, namespace 0, key 0f3a5c7e9b1d2f40 of 8 B, shard 3
 *     +0.021 ms  SDK: the call has returned
 *     +0.034 ms  native client: READ of 64 B posted over tcp
 *     +0.174 ms  native client: READ landed, 192 B
 *     +0.204 ms  native client: the owner followed the index to the entry
 *     +0.215 ms  SDK: ended, with a value of 5 B
 *
 * For one operation at a time: what others do meanwhile is counted with it. Not for keys and values: neither is written.
 */
import { tracingChannel } from 'node:diagnostics_channel';
import { writeSync } from 'node:fs';
import { types } from 'node:util';
import { knowCallers, type CallMessage } from './call-channel.js';
import { addon } from '../native/addon.js';
import type { NativeStep } from '../native/native-client.js';
import type { Key } from './pending.js';
import type { ClientStats } from './transport.js';

export interface Traced {
  /** As the client's calls name it (callOf). */
  readonly caller: object;
  readonly stats: () => ClientStats;
  readonly takeSteps: () => readonly NativeStep[];
  /** Undefined: this is no key. */
  readonly hashOf: (space: number, key: Key) => string | undefined;
  readonly shardOf: (space: number, key: Key) => number;
}

/** Whether calls are traced in this process. */
export const isTraced = (): boolean => process.env.FARKV_TRACE === '1';

const NAMES = [
  'reads',
  'readBytes',
  'followedReads',
  'locationHits',
  'locationStale',
  'tornReads',
  'lateDiscards',
  'foreignReads',
] as const;
type Counts = Pick<ClientStats, (typeof NAMES)[number]>;

interface Begun {
  readonly client: Traced;
  /** On the clock of the native client's steps. */
  readonly atMs: number;
  readonly before: Counts;
  /** A READ was one of its steps; those of mapped memory are none. */
  reads: boolean;
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
  const underWay = new WeakMap<Traced, number>();
  const ended = (message: CallMessage): void => {
    const call = begun.get(message);
    if (call === undefined) return;
    begun.delete(message);
    underWay.set(call.client, (underWay.get(call.client) ?? 1) - 1);
    write(lines(call, message).join(''));
  };
  tracingChannel<CallMessage, CallMessage>('farkv:call').subscribe({
    start: (message) => {
      const client = clients.get(callerOf(message) ?? message);
      if (client === undefined) return;
      write(`farkv trace: ${aboutOf(client, message)}\n`);
      const others = underWay.get(client) ?? 0;
      if (others === 0) client.takeSteps(); // of what nobody asked for: leases
      underWay.set(client, others + 1);
      begun.set(message, { client, atMs: bootMs(), before: client.stats(), reads: false });
    },
    end: (message) => {
      const call = begun.get(message);
      if (call === undefined) return;
      if ('result' in message || message.error !== undefined) {
        ended(message);
        return;
      }
      write([...taken(call), step(call, 'SDK: the call has returned')].join(''));
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

const bootMs = (): number => Number(addon.bootTimeNs()) / 1e6;

const step = ({ atMs }: Begun, text: string, ms = bootMs()): string => `  +${(ms - atMs).toFixed(3)} ms  ${text}\n`;

function lines(call: Begun, message: CallMessage): string[] {
  const steps = taken(call);
  const now = call.client.stats();
  const done = Object.fromEntries(NAMES.map((name) => [name, now[name] - call.before[name]])) as Record<
    keyof Counts,
    number
  >;
  return [
    ...steps,
    ...counted(done, call.reads).map((text) => step(call, `native client: ${text}`)),
    step(
      call,
      `SDK: ${message.error === undefined ? `ended, with ${resultOf(message.result)}` : failureOf(message.error)}`,
    ),
  ];
}

/** What the native client has done since it was last asked. */
function taken(call: Begun): string[] {
  return call.client.takeSteps().map((one) => {
    call.reads ||= one.type === 'read';
    return step(call, `native client: ${textOf(one)}`, one.bootMs);
  });
}

function textOf(one: NativeStep): string {
  switch (one.type) {
    case 'sent':
      return `${one.operation} of ${one.bytes} B sent to the owner over ${one.provider}`;
    case 'answered':
      return `${one.operation} answered with ${one.bytes} B: ${one.result}`;
    case 'read':
      return `READ of ${one.bytes} B posted over ${one.provider}`;
    case 'landed':
      return one.result === 'ok' ? `READ landed, ${one.bytes} B` : `READ failed: ${one.result}`;
  }
}

const many = (n: number, noun: string): string => `${n} ${noun}${n === 1 ? '' : 's'}`;

/** What is no step of its own. */
function counted(done: Counts, reads: boolean): string[] {
  const texts: string[] = [];
  if (done.locationHits > 0) texts.push('the location of the entry was known');
  if (done.locationStale > 0) texts.push('the known location of the entry was an old one');
  if (done.reads > 0 && !reads) texts.push(`${many(done.reads, 'READ')} of ${done.readBytes} B`);
  if (done.followedReads > 0) texts.push('the owner followed the index to the entry');
  for (const [count, why] of [
    [done.tornReads, 'torn by a change'],
    [done.lateDiscards, 'late for the lease'],
    [done.foreignReads, 'of memory that is another one now'],
  ] as const)
    if (count > 0) texts.push(`${many(count, 'READ')} did not count, ${why}`);
  return texts;
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
