/** Signals for farkv as the first process of a container, which the kernel gives no default action. Needs root. */
import test, { type ExecutionContext } from 'ava';
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { constants } from 'node:os';
import { setImmediate } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { CLI, freePorts } from '../support/cluster.js';

/** What the image runs, as modules of its own (deploy/docker/Dockerfile). */
const ONE_FILE = fileURLToPath(new URL('../../server/cli/one-file.js', import.meta.url));
const ENTRIES = { main: CLI, 'one-file': ONE_FILE };

/** The first process dies with unshare. */
const CONTAINER = ['--pid', '--fork', '--kill-child', '--mount-proc'];
const mayMakeContainers = spawnSync('unshare', [...CONTAINER, 'true']).status === 0;
const contained = mayMakeContainers ? test : test.skip;

class Contained {
  /** As a shell and a container's runtime say it: 143 after SIGTERM, whether a listener ended the process or the kernel. */
  readonly exit: Promise<number>;
  readonly #unshare: ChildProcess;

  constructor(t: ExecutionContext, entry: string, ...args: readonly string[]) {
    this.#unshare = spawn('unshare', [...CONTAINER, process.execPath, entry, ...args], { stdio: 'ignore' });
    this.exit = new Promise((resolve) =>
      this.#unshare.once('exit', (code, signal) => resolve(code ?? 128 + constants.signals[signal ?? 'SIGKILL'])),
    );
    t.teardown(() => this.#unshare.kill('SIGKILL'));
  }

  get running(): boolean {
    return this.#unshare.exitCode === null && this.#unshare.signalCode === null;
  }

  /** To the first process, once unshare has made it. */
  signal(signal: NodeJS.Signals): void {
    const { pid = 0 } = this.#unshare;
    try {
      const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim();
      if (children !== '') process.kill(Number(children), signal);
    } catch (error) {
      if (!['ENOENT', 'ESRCH'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
    }
  }
}

for (const [name, entry] of Object.entries(ENTRIES)) {
  contained(`${name}: a command that waits for an answer ends at a signal`, async (t) => {
    for (const [signal, code] of [
      ['SIGTERM', 143],
      ['SIGINT', 130],
    ] as const) {
      const silent = createServer().listen(0, '127.0.0.1');
      t.teardown(() => silent.close());
      await once(silent, 'listening');
      const { port } = silent.address() as AddressInfo;
      const get = new Contained(t, entry, 'get', '--connect', `127.0.0.1:${port}`, '--timeout', '2m', 'greeting');
      await once(silent, 'connection');
      get.signal(signal);
      t.is(await get.exit, code);
    }
  });

  contained(`${name}: a server that is still being loaded ends at a signal`, async (t) => {
    const [port] = await freePorts(1);
    const server = new Contained(t, entry, 'server', '--listen', `127.0.0.1:${port}`, '--memory', '64mb');
    // From its beginning on, again and again: which of them comes while its modules are loaded cannot be seen from here.
    while (server.running) {
      server.signal('SIGTERM');
      await setImmediate();
    }
    // A server that has listeners of its own, which are installed later, ends with 0. The kernel gives a first process no
    // default action, but for a moment: while its first thread blocks the signal, and another one does not.
    t.is(await server.exit, 143);
  });
}
