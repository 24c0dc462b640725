/** `farkv server`: runs a server until it is told to stop. */
import type { Argv } from 'yargs';
import type { CliCommand } from '../command.js';
import { hintFor } from '../exit-codes.js';
import { passOverSignals } from '../harmless-signals.js';
import { OPTION_NAMES, SERVER_OPTIONS, envName, type OptionSpec } from '../../config/options.js';
import { codeOf, formatLine, Log, type LogSink } from '../../log.js';
import type { LogFormat, ServerSettings } from '../../config/settings.js';
import type { ServerHandle } from '../../index.js';
import { printError, Told } from '../output.js';
import { BoundedLines, endUnread, unshared } from '../unread.js';
import { visibleJson, visibleLines } from '../../../core/visible-text.js';

/** Beside the options of config/options.ts. */
interface ServerArguments {
  readonly config?: string;
  readonly 'log-format'?: string;
  readonly json: boolean;
  readonly 'stop-with-stdin': boolean;
}

const THREE = `The first of three servers; the others differ in --id and --listen:
  farkv server --id s1 --listen 10.0.0.1:7400 \\
    --peers s1=10.0.0.1:9400,s2=10.0.0.2:9400,s3=10.0.0.3:9400 \\
    --secrets /etc/farkv/secrets --data-dir /var/lib/farkv`;

const FIXED_LIMITS = 'Fixed limits: keys 1 KiB, values 64 MiB; a shard has at most 8192 registered segments.';

const BOUNDS =
  'Bounds: a control connection costs at most 64 KiB of what it sends, and is closed with 64 MiB of unread data, all together with 256 MiB. ' +
  'A frame has at most 2 KiB before the login, and from a client, 64 KiB from an operator, 4 MiB from another server. ' +
  'After 10 wrong tokens a source address is told to wait 100 ms, then twice as long each time, to 30 s; a right token is let in at once. ' +
  'The port between servers holds 192 connections without a login, and begins 20 logins per second from strange addresses, 50 from those of its servers.';

function builder(y: Argv): Argv<ServerArguments> {
  let parser = y.usage(
    '$0 server [OPTIONS]\n\nRuns a server until SIGTERM or SIGINT. Then it hands its shards over, waits until the leases of its clients have run out, and ends.',
  );
  for (const name of OPTION_NAMES) {
    const spec: OptionSpec<unknown> = SERVER_OPTIONS[name];
    parser = parser.option(name, {
      group: spec.group,
      describe: spec.describe,
      // Values are read by config/load.ts, the same for flags, environment and file.
      type: spec.kind === 'flag' ? 'boolean' : 'string',
      ...(spec.kind === 'list' ? { array: true, nargs: 1 } : {}),
      ...(spec.parse.choices === undefined ? {} : { choices: spec.parse.choices }),
      ...(spec.default === undefined ? {} : { defaultDescription: spec.defaultText ?? spec.default }),
    });
  }
  return parser
    .option('config', {
      group: 'Other',
      type: 'string',
      describe: 'YAML or JSON file with any of these options by name',
    })
    .option('json', {
      group: 'Other',
      type: 'boolean',
      default: false,
      describe: 'Print one JSON line when ready: {"event":"ready",...}',
    })
    .option('stop-with-stdin', {
      group: 'Other',
      type: 'boolean',
      default: false,
      describe: 'Stop when standard input ends: for a server that belongs to the program that starts it',
    })
    .example('$0 server', 'one server on 127.0.0.1:7400 with a temporary directory')
    .example('$0 server --data-dir /var/lib/farkv --memory 8gb', 'a server that remembers its cluster')
    .epilogue(
      `${THREE}\n\n` +
        `Each option is also an environment variable (${envName('data-dir')}) and a key of --config (data-dir, dataDir); flags win over the environment, the environment over the file.\n\n` +
        `${FIXED_LIMITS}\n\n${BOUNDS}\n\nSignals: SIGTERM and SIGINT stop it. SIGHUP, SIGUSR1 and SIGUSR2 do nothing: files of tokens and certificates are read again by themselves when they change.\n\nExit codes: 0 stopped as told, 1 failed, 2 wrong usage or configuration, 4 removed from the cluster (farkv member remove).`,
    ) as unknown as Argv<ServerArguments>;
}

function announce(server: ServerHandle, json: boolean, ephemeral: boolean): void {
  const out = unshared(process.stdout);
  if (json) {
    const { id, clusterId, peerAddresses: peer, fabric, shards, dataDir } = server;
    out.write(
      `${visibleJson({ event: 'ready', id, clusterId, control: server.addresses, peer, http: server.httpAddresses, fabric, shards, dataDir, pid: process.pid })}\n`,
    );
    return;
  }
  const data = server.fabric.map((a) => `${a.provider} ${a.address}`).join(', ') || 'none (a witness)';
  out.write(
    visibleLines(
      `farkv server ${server.id} is ready: control ${server.addresses.join(', ')}; servers ${server.peerAddresses.join(', ')}; ${server.httpAddresses.map((at) => `http ${at}; `).join('')}data ${data}; ${server.shards.length} shards; ` +
        `directory ${server.dataDir}${ephemeral ? ' (temporary, removed at the end)' : ''}\n`,
    ),
  );
}

type Tell = (text: string, signal: NodeJS.Signals) => void;

async function handler(args: ServerArguments): Promise<void> {
  // These signals may come at once, and the log comes later.
  let tell: Tell = () => undefined;
  const takeSignals = passOverSignals((text, signal) => tell(text, signal));
  try {
    await serve(args, (now) => (tell = now));
  } finally {
    takeSignals();
  }
}

/** Why the server ends, as the lines of its log are. */
function failureLine(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  const hint = hintFor(error);
  const stack = process.env.FARKV_STACK === undefined || !(error instanceof Error) ? undefined : error.stack;
  return formatLine('json', new Date(), 'error', message, {
    event: 'server-failed',
    message,
    ...codeOf(error),
    ...(hint === undefined ? {} : { hint }),
    ...(stack === undefined ? {} : { stack }),
  });
}

/** Of a --config that cannot be read nobody knows what it says of the format. */
function settingsOf(
  args: ServerArguments,
  load: (hearLogFormat: (format: LogFormat) => void) => ServerSettings,
): ServerSettings {
  let format = args['log-format'] ?? process.env[envName('log-format')];
  try {
    return load((heard) => (format = heard));
  } catch (error) {
    if (format !== 'json') throw error;
    printError(failureLine(error));
    throw new Told(error);
  }
}

/** `hear`: who is told of signals that change nothing. */
async function serve(args: ServerArguments, hear: (tell: Tell) => void): Promise<void> {
  const { loadSettings } = await import('../../config/load.js');
  const { serviceManager } = await import('../service-manager.js');
  const { RecoveryBar } = await import('../recovery-bar.js');
  const { hasRdmaDevice, startWith } = await import('../../start.js');
  const given = Object.fromEntries(
    [...OPTION_NAMES, 'config'].map((name) => [name, (args as unknown as Readonly<Record<string, unknown>>)[name]]),
  );
  const settings = settingsOf(args, (hearLogFormat) =>
    loadSettings(given, { env: process.env, dashes: true, hasVerbs: hasRdmaDevice(), hearLogFormat }),
  );

  const stop = new AbortController();
  const isForPeople = process.stderr.isTTY && settings.logFormat === 'text';
  const recovery = new RecoveryBar(isForPeople ? process.stderr : undefined);
  const lines = new BoundedLines(unshared(process.stderr), (count) =>
    formatLine(settings.logFormat, new Date(), 'warn', `${count} lines were not written here: nobody read them`, {
      event: 'omitted',
      count,
    }),
  );
  const log: LogSink = (level, text, fields) => {
    if (recovery.takes(fields)) return;
    lines.write(formatLine(settings.logFormat, new Date(), level, text, fields));
  };
  const own = new Log(settings.logLevel, log);
  const tell = await serviceManager(process.env, (text) => own.warn(text, { event: 'service-manager-failed' }));
  const told = (): void => {
    if (!stop.signal.aborted) {
      own.info('stopping, once the shards are handed over and the leases of clients have run out', {
        event: 'stopping',
      });
      tell('STOPPING=1');
    }
    stop.abort();
  };
  hear((text, signal) => own.info(text, { event: 'signal', signal }));
  process.on('SIGTERM', told);
  process.on('SIGINT', told);
  if (args['stop-with-stdin']) process.stdin.on('end', told).on('error', told).resume();
  try {
    const server = await startWith({ settings }, { signal: stop.signal, log });
    announce(server, args.json, settings.dataDir === undefined);
    if (!stop.signal.aborted) tell(`READY=1\nSTATUS=serves ${server.shards.length} shards`);
    stop.signal.addEventListener('abort', () => void server.close());
    if (stop.signal.aborted) void server.close();
    await server.closed;
  } catch (error) {
    // Told to stop before it was ready.
    if (stop.signal.aborted) return;
    if (settings.logFormat === 'text') throw error;
    lines.writeLast(failureLine(error));
    throw new Told(error);
  } finally {
    process.off('SIGTERM', told);
    process.off('SIGINT', told);
    process.stdin.destroy();
    endUnread();
  }
}

const command: CliCommand<ServerArguments> = { command: 'server', describe: 'Run a server', builder, handler };
export default command;
