/** `farkv top` on a terminal of 80 columns, which script(1) makes: its frames, its end, and the terminal afterwards. */
import test from 'ava';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { CLI, Cluster } from '../support/cluster.js';

const COLUMNS = 80;
const ROWS = 24;
const ENTER = '\x1b[?1049h\x1b[?25l';
const LEAVE = '\x1b[?25h\x1b[?1049l';
const HOME = '\x1b[H';
/** With so many frames after it a key was passed over. */
const IGNORED = 10;
const RESTORED = 'the terminal is as it was';

interface Ended {
  readonly code: number | null;
  readonly output: string;
}

interface Running {
  /** What it has written so far. */
  readonly output: () => string;
  readonly press: (keys: string) => void;
  readonly kill: () => void;
  readonly ended: Promise<Ended>;
}

/** `farkv top` on a terminal; `written`: it has written more. */
function running(addresses: readonly string[], timeout: string, written: (top: Running) => void): Running {
  const command = `"${process.execPath}" "${CLI}" top --timeout ${timeout} --connect ${addresses.join(',')}`;
  const lines = [
    `stty cols ${COLUMNS} rows ${ROWS}; before=$(stty -g)`,
    `${command}; code=$?`,
    `[ "$before" = "$(stty -g)" ] && echo ${RESTORED}; exit $code`,
  ];
  const terminal = spawn('script', ['-qec', lines.join('\n'), '/dev/null'], {
    stdio: ['pipe', 'pipe', 'inherit'],
    env: { ...process.env, SHELL: '/bin/sh', TERM: 'xterm' },
  });
  let output = '';
  const top: Running = {
    output: () => output,
    press: (keys) => terminal.stdin.write(keys),
    kill: () => terminal.kill('SIGKILL'),
    ended: once(terminal, 'close').then(([code]) => ({ code: code as number | null, output })),
  };
  terminal.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text;
    written(top);
  });
  return top;
}

/**
 * Presses these keys, all at once, as soon as the first frame is whole. The code is null where they were passed over.
 */
async function pressing(keys: string, addresses: readonly string[]): Promise<Ended> {
  /** Frames when the keys were pressed. */
  let pressedAt: number | undefined;
  const { ended } = running(addresses, '2m', ({ output, press, kill }) => {
    const frames = output().split('\x1b[J').length - 1;
    if (pressedAt === undefined && frames > 0) {
      pressedAt = frames;
      press(keys);
    }
    if (pressedAt !== undefined && frames > pressedAt + IGNORED) kill();
  });
  return await ended;
}

/** What each frame shows, in lines. */
function framesIn(output: string): string[][] {
  const end = output.indexOf(LEAVE);
  const shown = output.slice(output.indexOf(ENTER) + ENTER.length, end < 0 ? undefined : end);
  const frames = shown.split(HOME).slice(1);
  return frames.map((frame) => frame.replaceAll('\x1b[K', '').replaceAll('\x1b[J', '').split('\r\n'));
}

/** A container may have no terminals. */
const canRun = spawnSync('script', ['-qec', 'true', '/dev/null'], { stdio: 'ignore' }).status === 0;
const onTerminal = canRun ? test : test.skip;

onTerminal('on a terminal farkv top shows frames until a key ends it, and leaves the terminal as it was', async (t) => {
  const { addresses } = await Cluster.start(t, { servers: 3, shards: 6, level: 'replicated' });
  for (const [name, keys] of [
    ['q', 'q'],
    ['keys in one read', 'xqq'],
    ['Ctrl-C', '\x03'],
  ] as const) {
    const { code, output } = await pressing(keys, addresses);
    t.is(code, 0, `${name}: ${output}`);
    const [, ...left] = output.split(LEAVE);
    t.is(left.length, 1, `${name} leaves the alternate screen, with a cursor, once`);
    t.is(left[0]?.trim(), RESTORED, name);
    const frames = framesIn(output);
    t.true(frames.length > 0, name);
    for (const lines of frames) {
      t.true(lines.length <= ROWS, `${name}: ${lines.length} lines`);
      for (const line of lines) t.true(line.length <= COLUMNS, line);
      const text = lines.join('\n');
      t.regex(text, /^farkv \w+ {2}[\d:]+ UTC {2}leader s\d, term \d+ {2}6 of 6 shards served$/m);
      t.regex(text, /^copies \d+\/12 in sync {2}lag \d+$/m);
      t.regex(text, /^SERVER +STATE .*USED +READS\/S +PUTS\/S +PUT P99\b/m);
    }
  }
});

/** The next frame, of those that come from now on, that this is true of. */
async function frameWith(top: Running, isIt: (text: string) => boolean): Promise<string> {
  const from = framesIn(top.output()).length;
  const deadline = performance.now() + 30_000;
  for (;;) {
    const frames = framesIn(top.output()).slice(from);
    const found = frames.map((lines) => lines.join(' ')).find(isIt);
    if (found !== undefined) return found;
    if (performance.now() > deadline) throw new Error(`no such frame: ${top.output()}`);
    await sleep(50);
  }
}

onTerminal('a server that stands still is said to, another is asked, and q ends what waits for all', async (t) => {
  const { servers, addresses } = await Cluster.start(t, { servers: 3, shards: 6, level: 'replicated' });
  const top = running(addresses.slice(0, 1), '2m', () => undefined);
  t.teardown(top.kill);
  await frameWith(top, (text) => text.includes('6 of 6 shards served'));
  const silence = /^s\d does not answer: this is of [\d:]+ UTC, and each known server is asked farkv /;
  const before = performance.now();
  servers[0]?.signal('SIGSTOP');
  t.regex(await frameWith(top, (text) => silence.test(text)), /^s1 /);
  t.regex(await frameWith(top, (text) => text.startsWith('farkv ')), / s1 +unreachable /);
  const tookMs = performance.now() - before;
  t.true(tookMs < 10_000, `${tookMs} ms until another server's answer`);
  for (const server of servers) server.signal('SIGSTOP');
  await frameWith(top, (text) => silence.test(text));
  const pressedAt = performance.now();
  top.press('q');
  const { code, output } = await top.ended;
  t.is(code, 0, output);
  t.true(performance.now() - pressedAt < 2000, `${performance.now() - pressedAt} ms until it ended`);
});
