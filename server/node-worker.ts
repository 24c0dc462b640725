/**
 * The entry of a node's thread. A server has a thread of its own so that an event loop that is stalled by whatever else
 * runs in the process delays no heartbeat and no vote. Nothing here decides anything.
 */
import { parentPort, workerData } from 'node:worker_threads';
import type { FarkvError } from '../core/errors.js';
import { asFarkvError } from './native-errors.js';
import { loadFront } from './control/front-thread.js';
import type { Failure, FromNode, Start, ToNode } from './thread-messages.js';

const port = parentPort;
if (port === null) throw new Error('node-worker.js is the entry of a worker thread');

const say = (message: FromNode): void => port.postMessage(message);
const failureOf = (error: FarkvError): Failure => ({ code: error.code, message: error.message });

async function run({ settings }: Start): Promise<void> {
  const front = loadFront({ ...settings, tls: settings.tls, serverId: settings.id });
  // Imported here, so that both threads load at once, and a missing addon is an answer and not a thread that dies.
  const [{ FarkvNode }, { addon }] = await Promise.all([import('./node.js'), import('../native/addon.js')]);
  const node = new FarkvNode(settings, addon, front, (level, text, fields) => say({ t: 'log', level, text, fields }));
  const life = { stopping: false, failed: false };
  port?.on('message', (message: ToNode) => {
    if (message.t === 'status') {
      node.status().then(
        (status) => say({ t: 'status', id: message.id, status, failure: undefined }),
        (error: unknown) =>
          say({ t: 'status', id: message.id, status: undefined, failure: failureOf(asFarkvError(error)) }),
      );
      return;
    }
    if (life.failed) return;
    life.stopping = true;
    void node.stop().then(() => say({ t: 'stopped' }));
  });
  const info = await node.start();
  say({ t: 'ready', info });
  try {
    await node.failure;
  } catch (error) {
    if (life.stopping) return;
    life.failed = true; // said when it has stopped, whoever tells it to stop meanwhile
    await node.stop();
    throw error;
  }
}

run(workerData as Start).catch((error: unknown) => say({ t: 'failed', failure: failureOf(asFarkvError(error)) }));
