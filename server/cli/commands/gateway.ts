/** `farkv gateway`: serves Redis clients, with a cluster behind it. Commands are run by native/resp, never here. */
import { setTimeout as sleep } from 'node:timers/promises';
import { formatHostPort, parseHostPort, type HostPort } from '../../../core/address.js';
import { ERROR_CODES, FarkvError } from '../../../core/errors.js';
import { isLoopback } from '../../config/units.js';
import type { CliCommand } from '../command.js';
import {
  clientOptions,
  integerOf,
  integerOption,
  namespaceOf,
  withClient,
  type ClientArguments,
} from '../client-options.js';
import { passOverSignals } from '../harmless-signals.js';
import { exitCodesHelp } from '../exit-codes.js';
import { print } from '../output.js';

const CONNECTIONS_MAX = 1_000_000;
/** As many as its client may have at once. */
const OUTSTANDING = 65_536;

/** What is under way when it is told to stop has so long to be answered. */
const END_MS = 1000;
const END_LOOK_MS = 5;

interface GatewayArguments extends ClientArguments {
  readonly listen: string;
  readonly insecure: boolean;
  readonly 'max-connections': string;
}

function readListen({ listen, insecure }: GatewayArguments): HostPort {
  let address: HostPort;
  try {
    address = parseHostPort(listen);
  } catch (cause) {
    throw new FarkvError('ERR_ADDRESS_INVALID', `--listen: ${cause instanceof Error ? cause.message : 'no address'}`, {
      cause,
    });
  }
  if (!insecure && !isLoopback(address.host))
    throw new FarkvError(
      'ERR_CONFIG',
      `--listen ${listen}: the gateway has neither passwords nor TLS, so whoever reaches it may read and write everything; listen on 127.0.0.1, or say --insecure`,
    );
  return address;
}

/** Until the process is told to stop. */
function stopped(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => resolve(signal));
  });
}

async function serve(args: GatewayArguments): Promise<void> {
  const address = readListen(args);
  const namespace = namespaceOf(args.namespace);
  const maxConnections = integerOf('max-connections', args['max-connections'], 1, CONNECTIONS_MAX);
  const { redisAccessOf } = await import('../../../client/client.js');
  const told = stopped();
  await withClient(
    args,
    async (client) => {
      const redis = redisAccessOf(client);
      const port = listen(() => redis.listenRedis({ ...address, maxConnections, namespace }), args.listen);
      print(`farkv gateway: Redis clients may connect to ${formatHostPort({ ...address, port })}\n`);
      await told;
      const end = performance.now() + END_MS;
      while (redis.endRedis() > 0 && performance.now() < end) await sleep(END_LOOK_MS);
      redis.closeRedis();
    },
    { maxOutstanding: OUTSTANDING },
  );
}

const gateway: CliCommand<GatewayArguments> = {
  command: 'gateway',
  describe: 'Serve Redis clients (GET, SET, INCR, ...) from a cluster',
  builder: (y) =>
    clientOptions(y)
      .option('listen', {
        alias: 'l',
        type: 'string',
        requiresArg: true,
        default: '127.0.0.1:6379',
        describe: 'Where Redis clients connect, host:port; port 0: a free one',
      })
      .option('insecure', {
        type: 'boolean',
        default: false,
        describe: 'Allow listening beyond loopback: there are no passwords and no TLS',
      })
      .option('max-connections', {
        ...integerOption(10_000),
        describe: 'Redis clients at once, 1 to 1000000, at most the open files allowed less 64; more are refused',
      })
      .example('$0 gateway', 'redis-cli and every Redis client can connect to 127.0.0.1:6379')
      .epilogue(
        `Database n of Redis is the namespace n (behind --namespace, if that is given). Which commands there are, and what each promises, says docs/gateway.md. SIGTERM and SIGINT stop it, once what is under way is answered, after a second at most; SIGHUP, SIGUSR1 and SIGUSR2 do nothing.\n\n${exitCodesHelp({ done: 'stopped as told' })}`,
      ),
  handler: async (args) => {
    const takeSignals = passOverSignals(() => undefined);
    try {
      await serve(args);
    } finally {
      takeSignals();
    }
  },
};

function listen(start: () => number, where: string): number {
  try {
    return start();
  } catch (cause) {
    const code = ERROR_CODES.find((one) => cause instanceof Error && 'code' in cause && cause.code === one);
    if (code === undefined) throw cause;
    const what =
      code === 'ERR_ADDRESS_IN_USE'
        ? 'the port is taken, perhaps by a redis-server; choose another one'
        : code === 'ERR_ADDRESS_INVALID'
          ? 'this host has no such address'
          : (cause as Error).message;
    throw new FarkvError(code, `--listen ${where}: ${what}`, { cause });
  }
}

export default gateway;
