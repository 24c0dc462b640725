/**
 * A connection to one Redis server: many commands in one go, their replies in order. The few commands of an import need
 * no client library: one would be another dependency of everybody who installs farkv.
 */
import { connect as connectTcp, isIP, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { decodedPart } from '../../core/address.js';
import { FarkvError } from '../../core/errors.js';
import { fileReason, PEM_BYTES_MAX, readRegular } from '../../net/regular-file.js';
import { ofRedis } from './left-out.js';
import { isError, RedisFailure, Replies, type Allowance, type ErrorReply, type Reply } from './replies.js';

export interface RedisAddress {
  readonly host: string;
  readonly port: number;
  readonly tls: boolean;
  readonly user: string | undefined;
  readonly password: string | undefined;
  readonly database: number;
}

export interface RedisOptions {
  readonly caFile?: string;
  /** How long it may be silent while something is asked. */
  readonly timeoutMs: number;
}

const DEFAULT_PORT = 6379;

/** redis://[user:password@]host[:port][/database]. Throws ERR_CONFIG. */
export function parseRedisAddress(text: string, password = process.env.FARKV_REDIS_PASSWORD): RedisAddress {
  const form = 'redis://[user:password@]host[:port][/database]';
  let url: URL;
  try {
    url = new URL(text);
  } catch (cause) {
    throw new FarkvError('ERR_CONFIG', `the address of the Redis server is not ${form}`, { cause });
  }
  const database = url.pathname.replace(/^\//, '');
  if (url.hostname === '' || !/^\d{0,5}$/.test(database) || url.search !== '' || url.hash !== '')
    throw new FarkvError('ERR_CONFIG', `the address of the Redis server is not ${form}`);
  const decoded = (part: string, what: string): string | undefined => {
    try {
      return part === '' ? undefined : decodedPart(part, what);
    } catch (cause) {
      throw new FarkvError('ERR_CONFIG', `the Redis server: ${(cause as Error).message}`, { cause });
    }
  };
  return {
    host: url.hostname.replace(/^\[(.*)\]$/, '$1'),
    port: url.port === '' ? DEFAULT_PORT : Number(url.port),
    tls: url.protocol === 'rediss:',
    user: decoded(url.username, 'the user'),
    password: decoded(url.password, 'the password') ?? (password === '' ? undefined : password),
    database: Number(database),
  };
}

type Command = readonly (string | Buffer)[];

function encode(command: Command): Buffer {
  const parts: Buffer[] = [Buffer.from(`*${command.length}\r\n`)];
  for (const word of command) {
    const bytes = Buffer.from(word);
    parts.push(Buffer.from(`$${bytes.length}\r\n`), bytes, Buffer.from('\r\n'));
  }
  return Buffer.concat(parts);
}

export class RedisConnection {
  readonly #socket: Socket;
  readonly #replies: Replies;
  readonly #name: string;
  readonly #timeoutMs: number;
  #failure: Error | undefined;

  private constructor(socket: Socket, name: string, { timeoutMs }: RedisOptions) {
    this.#socket = socket;
    this.#name = name;
    this.#timeoutMs = timeoutMs;
    socket.on('timeout', () =>
      socket.destroy(new RedisFailure('ERR_TIMEOUT', `the Redis server ${name} did not answer within ${timeoutMs} ms`)),
    );
    socket.on('error', (error) => (this.#failure ??= error));
    this.#replies = new Replies(socket);
  }

  /** Connected, authenticated, and at the database. */
  static async open(address: RedisAddress, options: RedisOptions): Promise<RedisConnection> {
    const { host, port, tls, user, password, database } = address;
    const name = `${host}:${port}`;
    if (options.caFile !== undefined && !tls)
      throw new FarkvError('ERR_CONFIG', '--redis-ca: it is for an address with TLS: rediss://, not redis://');
    const ca = options.caFile === undefined ? undefined : readAuthority(options.caFile);
    const socket = tls
      ? connectTls({
          host,
          port,
          ...(isIP(host) === 0 ? { servername: host } : {}),
          ...(ca === undefined ? {} : { ca }),
        })
      : connectTcp({ host, port });
    const connection = new RedisConnection(socket, name, options);
    try {
      // A user without a password may have been made with `nopass`; it is never another one that is meant.
      if (user !== undefined) await connection.#must(['AUTH', user, password ?? '']);
      else if (password !== undefined) await connection.#must(['AUTH', password]);
      if (database !== 0) await connection.#must(['SELECT', String(database)]);
      await connection.#must(['PING']);
      return connection;
    } catch (error) {
      connection.close();
      throw error;
    }
  }

  /**
   * The replies, in the commands' order; an error of one command is its reply. `allowance`: of what is more than a word
   * for each command.
   */
  async ask(commands: readonly Command[], allowance: Partial<Allowance> = {}): Promise<Reply[]> {
    this.#replies.allow({ replies: commands.length, bulkMax: 0, bytes: 0, ...allowance });
    // The kernel takes what it can; the rest waits while replies are read, so that neither side waits for the other.
    this.#socket.write(Buffer.concat(commands.map(encode)));
    // Only while it has something to answer: between two calls it may have to wait for farkv.
    this.#socket.setTimeout(this.#timeoutMs);
    const replies: Reply[] = [];
    try {
      while (replies.length < commands.length) replies.push(await this.#replies.next());
    } catch (error) {
      const cause = this.#failure ?? error;
      this.close();
      if (cause instanceof RedisFailure) throw cause;
      const why = cause instanceof Error ? cause.message : String(cause);
      throw new RedisFailure('ERR_DISCONNECTED', `the Redis server ${this.#name}: ${why}`, { cause });
    }
    this.#socket.setTimeout(0);
    return replies;
  }

  /** Throws what the server says against it. */
  static expect(reply: Reply | undefined, command: string): Reply {
    if (reply === undefined || !isError(reply)) return reply ?? null;
    throw refusal(reply, command);
  }

  close(): void {
    this.#socket.destroy();
  }

  async #must(command: Command): Promise<void> {
    const [reply] = await this.ask([command]);
    RedisConnection.expect(reply, String(command[0]));
  }
}

/** The commands of an import, for the user of an ACL: docs/from-redis.md has the whole of it. */
const RIGHTS = 'ping, select, scan, type, strlen, get, pttl, multi, exec';
/** A server that refuses whatever is asked, for a while. */
const PASSING = /^(?:LOADING|BUSY|MASTERDOWN) /;
const OF_COMMAND = /^NOPERM .*permissions? to run the /;

/** The error of a refusal that is not one key's: every other key would have it too. */
export function refusal({ error }: ErrorReply, command: string): RedisFailure {
  const text = `the Redis server refuses ${command}: ${ofRedis(error)}`;
  if (OF_COMMAND.test(error)) return new RedisFailure('ERR_UNAUTHORIZED', `${text}; an import takes ${RIGHTS}`);
  if (PASSING.test(error)) return new RedisFailure('ERR_BUSY', `${text}; import again later`);
  return new RedisFailure(/^(?:NOAUTH|WRONGPASS|NOPERM)/.test(error) ? 'ERR_UNAUTHORIZED' : 'ERR_CONFIG', text);
}

/** A refusal of one command may be for its key: a right to others, a slot that nobody serves. */
export function isOfKey({ error }: ErrorReply): boolean {
  return !OF_COMMAND.test(error) && !PASSING.test(error) && !error.startsWith('NOAUTH');
}

function readAuthority(file: string): Buffer {
  try {
    return readRegular(file, PEM_BYTES_MAX);
  } catch (cause) {
    throw new FarkvError('ERR_CONFIG', `--redis-ca: ${file} cannot be read: ${fileReason(cause)}`, { cause });
  }
}
