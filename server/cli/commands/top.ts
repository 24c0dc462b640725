/** `farkv top`: the figures of a cluster on a terminal, once per second. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Argv } from 'yargs';
import { visibleJson, visibleLines } from '../../../core/visible-text.js';
import { viewOf, type Look, type View } from '../../http/view.js';
import type { CliCommand } from '../command.js';
import { openCluster, withCluster, type ClusterConnection } from '../cluster.js';
import { connectionOptions, readConnection, type Connection, type ConnectionArguments } from '../connection.js';
import { exitCodesHelp } from '../exit-codes.js';
import { print } from '../output.js';
import { isEnd } from '../top-keys.js';
import { topScreen } from '../top-screen.js';
import { watch, type Asked } from '../top-watch.js';

const EACH_MS = 1000;
const ENTER = '\x1b[?1049h\x1b[?25l';
const LEAVE = '\x1b[?25h\x1b[?1049l';
const HOME = '\x1b[H';
const TO_LINE_END = '\x1b[K';
const TO_SCREEN_END = '\x1b[J';

async function look(cluster: ClusterConnection): Promise<Look> {
  return { status: await cluster.status(), atMs: Date.now() };
}

/** Connects when it is looked at for the first time. */
function serverAt(address: string, connection: Connection): Asked {
  const end = new AbortController();
  let opened: Promise<ClusterConnection> | undefined;
  return {
    look: async () => look(await (opened ??= openCluster(address, connection, end.signal))),
    close: () => {
      end.abort();
      opened?.then(
        (cluster) => cluster.close(),
        () => undefined,
      );
    },
  };
}

const wait = (ms: number, signal: AbortSignal): Promise<void> =>
  sleep(ms, undefined, { signal }).catch(() => undefined);

function draw(view: View, isSilent: boolean): void {
  const { columns, rows } = process.stdout;
  const text = visibleLines(topScreen(view, { columns, rows }, isSilent));
  process.stdout.write(`${HOME}${text.replaceAll('\n', `${TO_LINE_END}\n`)}${TO_LINE_END}${TO_SCREEN_END}`);
}

async function onTerminal(connection: Connection): Promise<void> {
  const end = new AbortController();
  const { stdin, stdout } = process;
  const stop = (): void => end.abort();
  const key = (pressed: Buffer): void => {
    if (isEnd(pressed)) stop();
  };
  if (stdin.isTTY) stdin.setRawMode(true).on('data', key).resume();
  process.on('SIGINT', stop).on('SIGTERM', stop);
  stdout.write(ENTER);
  let view: View | undefined;
  try {
    await watch(
      {
        ...connection,
        server: (address) => serverAt(address, connection),
        show: (now, before) => draw((view = viewOf(now, before)), false),
        silent: () => {
          if (view !== undefined) draw(view, true);
        },
        wait,
      },
      end.signal,
    );
  } finally {
    stdout.write(LEAVE);
    if (stdin.isTTY) stdin.setRawMode(false).off('data', key).pause();
    process.off('SIGINT', stop).off('SIGTERM', stop);
  }
}

/** Rates are those between two looks. */
const ofOneSecond = (connection: Connection): Promise<View> =>
  withCluster(connection, async (cluster) => {
    const before = await look(cluster);
    await sleep(EACH_MS);
    return viewOf(await look(cluster), before);
  });

interface TopArguments extends ConnectionArguments {
  readonly json: boolean;
}

async function handler(args: TopArguments): Promise<void> {
  const connection = readConnection(args);
  if (args.json) {
    print(`${visibleJson(await ofOneSecond(connection), 2)}\n`);
    return;
  }
  if (process.stdout.isTTY) {
    await onTerminal(connection);
    return;
  }
  print(`${topScreen(await ofOneSecond(connection), { columns: Infinity, rows: Infinity })}\n`);
}

const command: CliCommand<TopArguments> = {
  command: 'top',
  describe: 'Show servers, rates, latency and what is wrong, once per second',
  builder: (y): Argv<TopArguments> =>
    connectionOptions(y, 'an operator or a monitor')
      .option('json', {
        type: 'boolean',
        default: false,
        describe: 'Print one JSON object and end: rates are those of one second (docs/monitoring.md has the fields)',
      })
      .example('$0 top', 'until q or Ctrl-C')
      .example('$0 top | cat', 'one frame')
      .epilogue(exitCodesHelp({ done: 'it was shown' })),
  handler,
};
export default command;
