/** A server that answers the few commands of an import as Redis would, with what a test wants it to say. */
import type { ExecutionContext } from 'ava';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { Replies } from '../../tools/redis/replies.js';

export interface FakeRedis {
  /** Keys with the PTTL that each answers, in the text of the protocol; -1: it never expires. */
  readonly keys: ReadonlyMap<string, string>;
  /** What a command is refused with; undefined: it is not. */
  readonly refuses?: (command: string, key: string | undefined) => string | undefined;
}

const bulk = (text: string): string => `$${Buffer.byteLength(text)}\r\n${text}\r\n`;

/** Resolves with its address; it ends with the test. Values are `value of KEY`. */
export async function fakeRedis(t: ExecutionContext, { keys, refuses }: FakeRedis): Promise<string> {
  const server = createServer((socket) => {
    /** Of a transaction; undefined: there is none. `false`: a command of it was refused. */
    let queued: string[] | false | undefined;
    const plain = (command: string, key = ''): string => {
      switch (command) {
        case 'SCAN':
          return `*2\r\n${bulk('0')}*${keys.size}\r\n${[...keys.keys()].map(bulk).join('')}`;
        case 'DBSIZE':
          return `:${keys.size}\r\n`;
        case 'TYPE':
          return '+string\r\n';
        case 'STRLEN':
          return ':10\r\n';
        case 'GET':
          return bulk(`value of ${key}`);
        case 'PTTL':
          return `:${keys.get(key) ?? '-2'}\r\n`;
        default:
          return '+PONG\r\n';
      }
    };
    const answer = (command: string, key: string | undefined): string => {
      const refusal = refuses?.(command, key);
      if (refusal !== undefined) {
        if (queued !== undefined) queued = false;
        return `-${refusal}\r\n`;
      }
      if (command === 'MULTI') {
        queued = [];
        return '+OK\r\n';
      }
      if (command === 'EXEC') {
        const done = queued;
        queued = undefined;
        if (done === undefined) return '-ERR EXEC without MULTI\r\n';
        return done === false
          ? '-EXECABORT Transaction discarded because of previous errors.\r\n'
          : `*${done.length}\r\n${done.join('')}`;
      }
      if (queued === undefined) return plain(command, key);
      if (queued !== false) queued.push(plain(command, key));
      return '+QUEUED\r\n';
    };
    void (async () => {
      const commands = new Replies(socket);
      for (;;) {
        commands.allow({ replies: 100, bulkMax: 1 << 20, bytes: 1 << 20 });
        const words = (await commands.next()) as readonly Buffer[];
        socket.write(answer(String(words[0]), words[1] === undefined ? undefined : String(words[1])));
      }
    })().catch(() => socket.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => server.close());
  return `redis://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
