/**
 * Which transport reaches which server: what is preferred, what is possible from here, what was picked in the end, and
 * why.
 *
 * auto prefers them in the order of PROVIDERS. A transport that was asked for by name comes first and the others
 * follow in that order; with `strict` nothing follows: what cannot be reached so is not reached. The native side tries
 * a server's addresses in the order given here and tells which one it got.
 */
import { existsSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { types } from 'node:util';
import { addressToUse } from '../core/metadata/data-address.js';
import { ofDevice, type FabricAddress, type Member } from '../core/metadata/state.js';
import { endText, type EndReason } from '../core/protocol/end-reason.js';
import { isSameHost, PROVIDERS, type Provider, type TransportChoice } from '../core/providers.js';
import { addon } from '../native/addon.js';
import type { NativeClientStats } from '../native/native-client.js';
import { shmHost } from '../native/host.js';
import type { ErrorCode } from './errors.js';

export type { TransportChoice };

/** The connection to one data-plane thread of one server. */
export interface Transport {
  readonly server: string;
  readonly worker: number;
  /** undefined: not connected, and not connected before. */
  readonly provider: Provider | undefined;
  readonly connected: boolean;
  /** Why it is this one and not a better one, or why it is none; for people. */
  readonly reason: string;
}

/** Counters since connect. `reads / gets` is READs per GET. */
export type ClientStats = Omit<NativeClientStats, 'owners'> & {
  /**
   * READs for each GET since connect, as requests of the owner's end: over shm a look into the index, or at an entry,
   * counts as one, and so does over tcp a READ of the index that the responder followed to the entry by itself
   * (`followedReads`). 0 before the first GET.
   */
  readonly readsPerGet: number;
  readonly transports: readonly Transport[];
};

/** The order in which providers are tried. */
export function preference(choice: TransportChoice, strict: boolean): readonly Provider[] {
  if (choice === 'auto') return PROVIDERS;
  return strict ? [choice] : [choice, ...PROVIDERS.filter((provider) => provider !== choice)];
}

export interface Reachable {
  readonly provider: Provider;
  readonly address: string;
  readonly device?: number;
}

/** What can be tried for one data-plane thread, and why the rest cannot. */
export interface Plan {
  /** All that may be tried, the most wanted first. */
  readonly order: readonly Provider[];
  readonly addresses: readonly Reachable[];
  readonly refused: ReadonlyMap<Provider, string>;
}

/** What this process can know before it tries; replaced in tests. */
export interface LocalCapabilities {
  readonly host: string;
  readonly providers: readonly Provider[];
  /** Why the socket of a shm address cannot be used from here, undefined when it can. */
  readonly socketProblem: (path: string) => string | undefined;
}

function socketProblem(path: string): string | undefined {
  const uid = process.geteuid?.();
  try {
    const found = statSync(path);
    if (!found.isSocket()) return `${path} is not a socket`;
    return uid === undefined || uid === 0 || found.uid === uid
      ? undefined
      : `the server runs as user ${found.uid}, this process as ${uid}`;
  } catch (error) {
    // Its server starts, or has ended: it is tried, as any address is. Without the directory it never will be there.
    const code = types.isNativeError(error) && 'code' in error ? String(error.code) : 'unknown';
    return code === 'ENOENT' && existsSync(dirname(path)) ? undefined : `its socket cannot be seen from here (${code})`;
  }
}

export function localCapabilities(): LocalCapabilities {
  return { host: shmHost(), providers: addon.constants.providers, socketProblem };
}

function problem(address: FabricAddress, here: LocalCapabilities, secure: boolean): string | undefined {
  if (!here.providers.includes(address.provider)) return 'not supported by this build';
  if (address.provider === 'tcp' && addressToUse(address.address, secure) === undefined)
    return 'the server does not encrypt it and was not started with --insecure-data';
  if (!isSameHost(address.provider)) return undefined;
  if (address.host !== here.host) return 'the server is on another host or in another container';
  return here.socketProblem(address.address.replace(/^unix:/, ''));
}

export interface Wish {
  readonly choice: TransportChoice;
  readonly strict: boolean;
  /** The control plane is reached by TLS: data travels in the clear only where its server says so. */
  readonly secure: boolean;
}

/** auto with strict tries the best transport that is possible, and only that one. */
export function plan(member: Member, worker: number, { choice, strict, secure }: Wish, here: LocalCapabilities): Plan {
  const addresses: Reachable[] = [];
  const refused = new Map<Provider, string>();
  const order = preference(choice, strict);
  for (const provider of order) {
    const offered = member.fabric.filter((address) => address.provider === provider && address.worker === worker);
    if (offered.length === 0) {
      refused.set(provider, 'the server does not offer it');
      continue;
    }
    const problems = offered.map((address) => problem(address, here, secure));
    offered.forEach(({ address, ...rest }, i) => {
      if (problems[i] === undefined)
        addresses.push({
          provider,
          address: provider === 'tcp' ? (addressToUse(address, secure) ?? address) : address,
          ...ofDevice(rest),
        });
    });
    const [first] = problems;
    if (first !== undefined && problems.every((p) => p !== undefined)) refused.set(provider, first);
    if (strict && addresses.length > 0) break;
  }
  return { order, addresses, refused };
}

/** For so long an error of an operation names why its connection was ended. */
const END_TOLD_MS = 60_000;

/** One owner as the native side's events change it. */
export class TransportState {
  readonly server: string;
  readonly worker: number;
  #plan: Plan;
  #provider: Provider | undefined;
  #connected = false;
  /** Whether it was tried at all, successfully or not. */
  tried = false;
  /** Providers that were possible and failed, with the last reason. */
  readonly #failed = new Map<Provider, ErrorCode>();
  #ended: { readonly why: EndReason; readonly at: number } | undefined;

  constructor(server: string, worker: number, plan: Plan) {
    this.server = server;
    this.worker = worker;
    this.#plan = plan;
    this.tried = plan.addresses.length === 0;
  }

  set plan(plan: Plan) {
    this.#plan = plan;
  }

  get connected(): boolean {
    return this.#connected;
  }

  /** There is nothing that could be tried from here. */
  get unreachable(): boolean {
    return this.#plan.addresses.length === 0;
  }

  /** `ended`: why the server itself ended the connection before. */
  connectedBy(provider: Provider, ended?: EndReason): void {
    this.#ended = ended === undefined ? undefined : { why: ended, at: performance.now() };
    this.#provider = provider;
    this.#connected = true;
    this.tried = true;
    this.#failed.delete(provider);
  }

  failed(provider: Provider, reason: ErrorCode): void {
    this.#connected = false;
    this.tried = true;
    this.#failed.set(provider, reason);
  }

  /** Why the server ended a connection lately, for a person. */
  get ended(): string | undefined {
    if (this.#ended === undefined || performance.now() - this.#ended.at > END_TOLD_MS) return undefined;
    return `${this.server} had ended the connection to worker ${this.worker}: ${endText(this.#ended.why)}`;
  }

  report(): Transport {
    return {
      server: this.server,
      worker: this.worker,
      provider: this.#provider,
      connected: this.#connected,
      reason: this.#reason(),
    };
  }

  #failure(provider: Provider, code: ErrorCode): string {
    const at = this.#plan.addresses.filter((to) => to.provider === provider).map(({ address }) => address);
    return `failed with ${code}${at.length === 0 ? '' : ` at ${at.join(', ')}`}`;
  }

  #reason(): string {
    const { order, refused } = this.#plan;
    const rank = this.#provider === undefined ? -1 : order.indexOf(this.#provider);
    const better = this.#connected && rank >= 0 ? order.slice(0, rank) : order;
    const told = better.flatMap((provider) => {
      const code = this.#failed.get(provider);
      const text = refused.get(provider) ?? (code === undefined ? undefined : this.#failure(provider, code));
      return text === undefined ? [] : [`${provider}: ${text}`];
    });
    if (this.ended !== undefined) told.push(this.ended);
    if (!this.#connected) return told.length === 0 ? 'not connected yet' : `not connected (${told.join('; ')})`;
    if (told.length > 0) return told.join('; ');
    return this.#provider !== undefined && isSameHost(this.#provider) ? 'same host' : 'as asked for';
  }
}
