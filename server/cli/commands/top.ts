/** `farkv top`: the figures of a cluster on a terminal, once per second. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Argv } from 'yargs';
import { visibleJson, visibleLines } from '../../../core/visible-text.js';
import { viewOf, type Look } from '../../http/view.js';
import type { CliCommand } from '../command.js';
import { withCluster, type ClusterConnection } from '../cluster.js';
import { connectionOptions, readConnection, type Connection, type ConnectionArguments } from '../connection.js';
import { exitCodesHelp } from '../exit-codes.js';
import { print } from '../output.js';
import { isEnd } from '../top-keys.js';
import { topScreen } from '../top-screen.js';
import { watch } from '../top-watch.js';

const EACH_MS = 1000;
const ENTER = '\x1b[?1049h\x1b[?25l';
const LEAVE = '\x1b[?25h\x1b[?1049l';
const HOME = '\x1b[H';
const TO_LINE_END = '\x1b[K';
const TO_SCREEN_END = '\x1b[J';
async function look(cluster: ClusterConnection): Promise<Look> {
  return { status: await cluster.status(), atMs: Date.now() };
}

const pause = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const over = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', over);
      resolve();
    };
    const timer = setTimeout(over, EACH_MS);
    signal.addEventListener('abort', over);
    if (signal.aborted) over();
  });

function show(now: Look, before: Look | undefined): void {
  const { columns, rows } = process.stdout;
  const text = visibleLines(topScreen(viewOf(now, before), { columns, rows }));
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
  try {
    await watch(
      (use) => withCluster(connection, (cluster) => use(() => look(cluster))),
      show,
      () => pause(end.signal),
      end.signal,
    );
  } finally {
    stdout.write(LEAVE);
    if (stdin.isTTY) stdin.setRawMode(false).off('data', key).pause();
    process.off('SIGINT', stop).off('SIGTERM', stop);
  }
}

/** Rates are those between two looks. */
const ofOneSecond = (connection: Connection): Promise<ReturnType<typeof viewOf>> =>
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
