/**
 * The entry of the thread of clients and operators: their listener, TLS, frames, logins, subscriptions and calls. It has
 * a copy of the metadata and nothing that a server cannot do without for as long as this thread is busy. Nothing here
 * decides anything about the cluster.
 */
import { once } from 'node:events';
import { parentPort, workerData, type MessagePort } from 'node:worker_threads';
import { FarkvError } from '../../core/errors.js';
import { EMPTY } from '../../core/metadata/reduce.js';
import { watchCredentials } from '../audit.js';
import { checkOperatorCall } from '../operator-calls.js';
import { Log } from '../log.js';
import { OWN_READINESS, OWN_STATUS } from '../http/bounds.js';
import type { ScrapeStatus } from '../http/scrape-status.js';
import { asFarkvError } from '../native-errors.js';
import type { OwnReadiness } from '../own-readiness.js';
import type { ClusterStatus } from '../status.js';
import { RecentAddresses } from './addresses.js';
import { Credentials, type Caller } from './auth.js';
import { CONTROL_HANDSHAKES, CONTROL_PLACES, KNOWN_ADDRESSES } from './bounds.js';
import { withinDescriptors } from './descriptors.js';
import { CallGate } from './call-gate.js';
import type { ClientQuery } from './client-list.js';
import { ControlPlane } from './control-plane.js';
import type { FromFront, FrontFigures, FrontStart, ToFront } from './front-messages.js';
import { Handshakes } from './handshakes.js';
import { Listener } from './listener.js';
import { Logins } from './logins.js';
import { applyChange } from './state-feed.js';
import { serverTls } from './tls.js';

function ownPort(): MessagePort {
  if (parentPort === null) throw new Error('front-worker.js is the entry of a worker thread');
  return parentPort;
}
const port = ownPort();

const say = (message: FromFront): void => port.postMessage(message);
const FIGURES_MS = 250;

interface Asked {
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: FarkvError) => void;
}

/** Imported here, so that a missing addon is an answer and not a thread that dies. */
const loaded = import('../../native/addon.js');
loaded.catch(() => undefined);

async function run(start: FrontStart): Promise<void> {
  const [{ incarnation }] = (await once(port, 'message')) as [Extract<ToFront, { t: 'open' }>];
  const { addon } = await loaded;
  const log = new Log(start.logLevel, (level, text, fields) => say({ t: 'log', level, text, fields }));
  const asked = new Map<number, Asked>();
  let calls = 0;
  let isBound = false;
  let state = EMPTY;
  const known = new RecentAddresses(KNOWN_ADDRESSES);
  const logins = new Logins();
  const send = (caller: Caller, method: string, args: unknown): Promise<unknown> =>
    new Promise((resolve, reject) => {
      // The control port answers while the others are bound.
      if (!isBound) throw new FarkvError('ERR_BUSY', 'the server is starting: ask again in a moment');
      calls += 1;
      asked.set(calls, { resolve, reject });
      say({ t: 'call', id: calls, caller, method, args, figures: figures() });
    });
  // It is async, so that what is wrong with a call is a rejection.
  const ask = async (caller: Caller, method: string, args: unknown): Promise<unknown> => {
    const checked = checkOperatorCall(caller, method, args);
    return method === 'clients' ? plane.clientPage(checked as ClientQuery) : await send(caller, method, checked);
  };
  const gate = new CallGate(ask);
  const credentials = new Credentials(start.access, watchCredentials(log));
  const plane: ControlPlane = new ControlPlane({
    serverId: start.serverId,
    handshakeMs: start.handshakeMs,
    credentials,
    maxConnections: start.maxConnections,
    state: () => state,
    tickets: addon,
    call: (caller, method, args) => gate.call(caller, method, args),
    known,
    logins,
    log,
  });
  const tls = start.tls === undefined ? undefined : serverTls(start.tls, log);
  const listener = await Listener.open({
    addresses: start.listen,
    tls,
    places: { ...withinDescriptors(CONTROL_PLACES), isKnown: (source) => known.has(source) },
    ...(tls === undefined ? {} : { handshakes: new Handshakes(CONTROL_HANDSHAKES) }),
    handshakeMs: start.handshakeMs,
    connection: (socket, guest) => plane.accept(socket, guest),
  });
  const http =
    start.httpListen.length === 0
      ? undefined
      : await (
          await import('../http/port.js')
        ).HttpPort.open({
          addresses: start.httpListen,
          serverId: start.serverId,
          incarnation,
          handshakeMs: start.handshakeMs,
          tls,
          credentials,
          known,
          logins,
          own: () => send('monitor', OWN_STATUS, {}) as Promise<ScrapeStatus>,
          readiness: () => send('monitor', OWN_READINESS, {}) as Promise<OwnReadiness>,
          all: () => gate.call('monitor', 'status', {}) as Promise<ClusterStatus>,
          log,
        });
  const figures = (): FrontFigures => ({ connections: listener.connections, clients: plane.clients });
  let told = '';
  setInterval(() => {
    credentials.look();
    tls?.look?.();
    const now = JSON.stringify(figures());
    if (now === told) return;
    told = now;
    say({ t: 'figures', figures: figures() });
  }, FIGURES_MS);
  port.on('message', (message: ToFront) => {
    switch (message.t) {
      case 'state':
        state = applyChange(state, message.change);
        plane.stateChanged();
        http?.stateChanged(state);
        say({ t: 'taken' });
        break;
      case 'happened':
        http?.happened(message.text, message.atMs);
        break;
      case 'answer': {
        const waiting = asked.get(message.id);
        asked.delete(message.id);
        const { failure, result } = message;
        if (failure === undefined) waiting?.resolve(result);
        else waiting?.reject(new FarkvError(failure.code, failure.message));
        break;
      }
      case 'ask':
        say({ t: 'here' });
        break;
      case 'open':
        break;
      case 'stop':
        plane.close();
        void Promise.all([listener.close(), http?.close()]).then(() => process.exit(0));
        break;
    }
  });
  say({ t: 'bound', bound: listener.bound, http: http?.bound ?? [] });
  isBound = true;
}

run(workerData as FrontStart).catch((error: unknown) => {
  const { code, message } = asFarkvError(error);
  say({ t: 'failed', failure: { code, message } });
});
