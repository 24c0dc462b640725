/** `farkv ready`: what /readyz or /healthz of a server's --http-listen says, as an exit code, for health checks. */
import { get as getPlain, type IncomingMessage, type RequestOptions } from 'node:http';
import { get as getSecure } from 'node:https';
import { FarkvError } from '../../../core/errors.js';
import { visible } from '../../../core/visible-text.js';
import { formatHostPort, isWildcard, parseHostPort } from '../../config/units.js';
import type { CliCommand } from '../command.js';
import { timeoutOf } from '../client-options.js';
import { EXIT, exitCodesHelp } from '../exit-codes.js';
import { print, printError } from '../output.js';

interface ReadyArguments {
  readonly address: string | undefined;
  readonly live: boolean;
  readonly timeout: string;
}

const DEFAULT = '127.0.0.1:9100';
/** Bytes of an answer that are read. */
const ANSWER_MAX = 4096;

/** With the scheme that the server speaks, as far as its environment tells. */
function baseOf(given: string | undefined, env: NodeJS.ProcessEnv): URL {
  const [listen = ''] = (env.FARKV_HTTP_LISTEN ?? '').split(',');
  const address = given ?? (listen === '' ? DEFAULT : listen);
  if (/^https?:\/\//.test(address)) return new URL(address);
  const isSecure = [env.FARKV_SECRETS, env.FARKV_TLS_CERT].some((one) => one !== undefined && one !== '');
  const { host, port } = parseHostPort(address);
  const local = isWildcard(host) ? (host === '::' ? '::1' : '127.0.0.1') : host;
  return new URL(`${isSecure ? 'https' : 'http'}://${formatHostPort({ host: local, port })}`);
}

/** What the answer begins with: whoever answers there need not be a server of farkv. */
async function startOf(response: AsyncIterable<Buffer>): Promise<string> {
  let start = Buffer.alloc(0);
  for await (const chunk of response) {
    start = Buffer.concat([start, chunk]);
    if (start.length >= ANSWER_MAX) break;
  }
  return start.toString('utf8', 0, ANSWER_MAX);
}

async function ask(url: URL, timeoutMs: number): Promise<{ readonly status: number; readonly said: string }> {
  const options: RequestOptions & { readonly rejectUnauthorized: boolean } = {
    signal: AbortSignal.timeout(timeoutMs),
    agent: false,
    // As Kubernetes' probes: nothing secret is sent, and the certificate need not name the loopback address.
    rejectUnauthorized: false,
  };
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const get = url.protocol === 'https:' ? getSecure : getPlain;
    get(url, options, resolve).on('error', reject);
  });
  return { status: response.statusCode ?? 0, said: visible((await startOf(response)).trim()) };
}

const schemeOf = ({ protocol }: URL): string => protocol.slice(0, -1);

/** What becomes of a connection that the other end took. */
const TAKEN = /^(ECONNRESET|EPIPE|EPROTO|HPE_.*|ERR_SSL_.*)$/;

const isTaken = (error: unknown): boolean => TAKEN.test((error as NodeJS.ErrnoException).code ?? '');
const NOT_HTTP = '; farkv ready asks the port that a server has by --http-listen: is this another port of it?';

/** Whoever took the connection and did not understand what it was sent may speak the other of http and https. */
async function otherScheme(url: URL, error: Error, timeoutMs: number): Promise<URL | undefined> {
  if (error.name === 'AbortError' || !isTaken(error) || timeoutMs <= 0) return undefined;
  const other = new URL(url);
  other.protocol = url.protocol === 'https:' ? 'http:' : 'https:';
  return await ask(other, timeoutMs).then(
    () => other,
    () => undefined,
  );
}

const ready: CliCommand<ReadyArguments> = {
  command: 'ready [address]',
  describe: 'Ask a server at its --http-listen whether it is ready',
  builder: (y) =>
    y
      .positional('address', {
        type: 'string',
        describe: `host:port, or an http:// or https:// address. Default: that of FARKV_HTTP_LISTEN, else ${DEFAULT}; https if FARKV_SECRETS or FARKV_TLS_CERT is set`,
      })
      .option('live', {
        type: 'boolean',
        default: false,
        describe: 'Only whether it answers (/healthz): one that waits for others is live and not ready',
      })
      .option('timeout', { type: 'string', requiresArg: true, default: '5s', describe: 'How long to wait' })
      .example('$0 ready && echo serves', 'without a token: the answer is for anybody')
      .epilogue(exitCodesHelp({ done: 'it is ready', failed: 'it is not, and the last line says why' })),
  handler: async ({ address, live, timeout }) => {
    let url: URL;
    try {
      url = new URL(live ? '/healthz' : '/readyz', baseOf(address, process.env));
    } catch (cause) {
      throw new FarkvError('ERR_CONFIG', `address: ${(cause as Error).message}`, { cause });
    }
    const say = (text: string): void => printError(`farkv ready: ${text}\n`);
    const timeoutMs = timeoutOf({ timeout });
    const begunMs = performance.now();
    try {
      const { status, said } = await ask(url, timeoutMs);
      if (status === 200) print(`${said}\n`);
      else say(said);
      process.exitCode = status === 200 ? EXIT.ok : EXIT.failed;
    } catch (error) {
      const other = await otherScheme(url, error as Error, Math.floor(timeoutMs - (performance.now() - begunMs)));
      say(
        other === undefined
          ? `${url.host} does not answer ${schemeOf(url)}: ${visible((error as Error).message)}${isTaken(error) ? NOT_HTTP : ''}`
          : `${url.host} speaks ${schemeOf(other)}, and was asked by ${schemeOf(url)}: farkv ready ${other.origin}`,
      );
      process.exitCode = EXIT.unavailable;
    }
  },
};
export default ready;
