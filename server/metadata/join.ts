/**
 * How a server comes to a cluster that there is: it asks any of its servers for a place, is told who the servers are,
 * and from then on is one of them; the metadata comes to it as to any learner. Asking again, after an answer that was
 * lost or a crash, gets the same answer.
 */
import { FarkvError } from '../../core/errors.js';
import { checkAddresses, MEMBERS_MAX } from '../../core/metadata/check-state.js';
import { hex128, hex64, list, maybe, record, text } from '../../core/protocol/check.js';
import { ControlClient } from '../../net/control-client.js';
import type { TrustSource } from '../../net/tls.js';
import { checkKnownServer, type KnownServer } from '../data-directory.js';
import { codeOf, describeError, type Log } from '../log.js';

export interface JoinRequest {
  readonly instance: string;
  /** Where this server answers clients and operators. */
  readonly control: readonly string[];
  /** Where it answers other servers. */
  readonly peer: readonly string[];
  /** A join token, where the cluster has tokens or certificates. */
  readonly token?: string;
}
export const checkJoinRequest = record<JoinRequest>({
  instance: hex64,
  control: checkAddresses,
  peer: checkAddresses,
  token: maybe(text(1024)),
});

export interface JoinAnswer {
  readonly clusterId: string;
  readonly servers: readonly KnownServer[];
}
const checkJoinAnswer = record<JoinAnswer>({ clusterId: hex128, servers: list(checkKnownServer, MEMBERS_MAX) });

export interface JoinOptions extends Omit<JoinRequest, 'token'> {
  readonly id: string;
  /** host:port of the ports between servers of the cluster, asked in turn. */
  readonly addresses: readonly string[];
  /** Of servers, in the order of their file: while they are exchanged, others may know another one than the first. */
  readonly tokens: readonly string[];
  readonly joinToken: string | undefined;
  readonly trust: TrustSource | undefined;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
  readonly sleep: (ms: number) => Promise<void>;
  readonly log: Log;
}

/** What may be otherwise a moment later. */
const PASSING = ['ERR_DISCONNECTED', 'ERR_TIMEOUT', 'ERR_NO_LEADER', 'ERR_BUSY'];
const RETRY_MS = 500;

/** Asks until it is answered. Rejects with the reason when it is refused, ERR_ABORTED with the signal. */
export async function joinCluster(options: JoinOptions): Promise<JoinAnswer> {
  const { addresses, tokens, signal, sleep, log } = options;
  let said = '';
  /** Which token is shown, and how many were refused one after the other. */
  let turn = 0;
  let refused = 0;
  for (let attempt = 0; ; attempt++) {
    const address = addresses[attempt % addresses.length] ?? '';
    try {
      return await ask(options, address, tokens[turn % tokens.length]);
    } catch (error) {
      if (signal.aborted) throw new FarkvError('ERR_ABORTED', 'the start was given up', { cause: error });
      if (!(error instanceof FarkvError)) throw error;
      if (error.code === 'ERR_UNAUTHORIZED' && ++refused < tokens.length) {
        turn++;
        continue;
      }
      if (!PASSING.includes(error.code)) throw error;
      const text = `not joined yet: ${describeError(error)}`;
      if (text !== said) log.info(text, { event: 'join-retried', address, ...codeOf(error) });
      said = text;
    }
    if (attempt % addresses.length === addresses.length - 1) await sleep(RETRY_MS);
  }
}

async function ask(options: JoinOptions, address: string, token: string | undefined): Promise<JoinAnswer> {
  const { id, instance, control, peer, joinToken, trust, timeoutMs, signal } = options;
  const request = { instance, control, peer, ...(joinToken === undefined ? {} : { token: joinToken }) };
  const client = await ControlClient.open({
    address,
    trust,
    timeoutMs,
    signal,
    hello: { role: 'peer', from: id, instance, clusterId: '', join: true, ...(token === undefined ? {} : { token }) },
  });
  try {
    return checkJoinAnswer(await client.call('join', request, timeoutMs), 'join');
  } finally {
    client.close();
  }
}
