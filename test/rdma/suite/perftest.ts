/**
 * One figure of perftest: a server and a client of the tool on this machine. A busy host lets either wait for as long
 * as it likes, so a run that gives no figure in time is reported and tried again; it says nothing about farkv.
 */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';

export interface Figure {
  /** The command, such as ib_read_lat. */
  readonly tool: string;
  /** Of both ends. */
  readonly words: readonly string[];
  /** Where the client finds the server. */
  readonly address: string;
  /** The size in the first column of the line that has the figure, */
  readonly bytes: number;
  /** and the figure's column, from 0. */
  readonly column: number;
}

export interface Patience {
  readonly attempts: number;
  /** For one attempt. */
  readonly limitMs: number;
}

const PATIENCE: Patience = { attempts: 3, limitMs: 60_000 };
/** A client that comes before its server listens is refused. */
const SOON_MS = 200;
/** A server ends by itself after its client. */
const SERVER_END_MS = 5_000;

interface Ended {
  readonly code: unknown;
  readonly stdout: string;
  readonly late: boolean;
}

async function client({ tool, words, address }: Figure, limitMs: number): Promise<Ended> {
  return await new Promise((resolve) => {
    execFile(tool, [...words, address], { timeout: limitMs, killSignal: 'SIGKILL' }, (error, stdout) =>
      resolve({ code: error?.code ?? (error === null ? 0 : error.message), stdout, late: error?.killed === true }),
    );
  });
}

/** The figure, or why there is none. */
async function attempt(figure: Figure, limitMs: number): Promise<number | string> {
  const server = spawn(figure.tool, figure.words, { stdio: 'ignore' });
  const gone = once(server, 'close').catch(() => undefined);
  const until = Date.now() + limitMs;
  let last: Ended;
  for (;;) {
    last = await client(figure, Math.max(1, until - Date.now()));
    if (last.code === 0 || last.late || last.code === 'ENOENT' || Date.now() + SOON_MS >= until) break;
    await sleep(SOON_MS);
  }
  await Promise.race([gone, sleep(last.code === 0 ? SERVER_END_MS : 0)]);
  server.kill('SIGKILL');
  await gone;
  const line = last.stdout.split('\n').find((l) => l.trim().startsWith(`${figure.bytes} `));
  const value = Number(line?.trim().split(/\s+/)[figure.column]);
  if (Number.isFinite(value) && value > 0) return value;
  const printed = last.stdout.trim() === '' ? 'printed nothing' : `printed ${JSON.stringify(last.stdout)}`;
  return last.late ? `${printed} in ${limitMs / 1000} s` : `${printed} and ended with ${String(last.code)}`;
}

/** Undefined when no attempt gave it. */
export async function perftest(
  figure: Figure,
  { attempts, limitMs }: Patience = PATIENCE,
  say: (text: string) => void = console.log,
): Promise<number | undefined> {
  for (let i = 1; i <= attempts; i++) {
    const result = await attempt(figure, limitMs);
    if (typeof result === 'number') return result;
    say(`   not measured: ${figure.tool} ${result} (attempt ${i} of ${attempts})`);
  }
  return undefined;
}
