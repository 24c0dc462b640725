/** A server that data commands are given to: one that wants a token, for the tests of a file. */
import type { TestFn } from 'ava';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Cluster, farkv } from './cluster.js';

export interface DataCommands {
  /** For the tests' own files; goes with the server. */
  readonly directory: string;
  /** What a command needs of its environment: where the server is, and the token. */
  readonly env: () => Readonly<Record<'FARKV_CONNECT' | 'FARKV_TOKEN', string>>;
  readonly run: (args: readonly string[], input?: string) => ReturnType<typeof farkv>;
}

export function dataCommands(test: TestFn): DataCommands {
  const directory = mkdtempSync(join(tmpdir(), 'farkv-commands-'));
  const teardowns: (() => unknown)[] = [];
  let address = '';
  test.before(async () => {
    const cluster = await Cluster.start(
      { teardown: (f) => void teardowns.push(f) },
      { servers: 1, args: ['--token', 'sesame'] },
    );
    ({ address } = cluster.server(0));
  });
  test.after.always(async () => {
    for (const f of teardowns) await f();
    rmSync(directory, { recursive: true, force: true });
  });
  const env = () => ({ FARKV_CONNECT: address, FARKV_TOKEN: 'sesame' });
  return {
    directory,
    env,
    run: (args, input) => farkv(args, { env: env(), ...(input === undefined ? {} : { input }) }),
  };
}
