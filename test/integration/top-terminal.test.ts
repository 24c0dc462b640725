/** `farkv top` on a terminal of 80 columns, which script(1) makes: its frames, its end, and the terminal afterwards. */
import test from 'ava';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
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

/**
 * Runs `farkv top` and presses these keys, all at once, as soon as the first frame is whole. The code is null where they
 * were passed over.
 */
async function pressing(keys: string, addresses: readonly string[]): Promise<Ended> {
  const top = `"${process.execPath}" "${CLI}" top --timeout 2m --connect ${addresses.join(',')}`;
  const lines = [
    `stty cols ${COLUMNS} rows ${ROWS}; before=$(stty -g)`,
    `${top}; code=$?`,
    `[ "$before" = "$(stty -g)" ] && echo ${RESTORED}; exit $code`,
  ];
  const terminal = spawn('script', ['-qec', lines.join('\n'), '/dev/null'], {
    stdio: ['pipe', 'pipe', 'inherit'],
    env: { ...process.env, SHELL: '/bin/sh', TERM: 'xterm' },
  });
  let output = '';
  /** Frames when the keys were pressed. */
  let pressedAt: number | undefined;
  terminal.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text;
    const frames = output.split('\x1b[J').length - 1;
    if (pressedAt === undefined && frames > 0) {
      pressedAt = frames;
      terminal.stdin.write(keys);
    }
    if (pressedAt !== undefined && frames > pressedAt + IGNORED) terminal.kill('SIGKILL');
  });
  const [code] = (await once(terminal, 'close')) as [number | null];
  return { code, output };
}

/** What each frame shows, in lines. */
function framesIn(output: string): string[][] {
  const shown = output.slice(output.indexOf(ENTER) + ENTER.length, output.indexOf(LEAVE));
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
