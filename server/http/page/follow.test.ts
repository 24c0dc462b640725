import test, { type ExecutionContext } from 'ava';
import { EventEmitter, once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { follow, type Refusal } from './follow.js';

/** Each request is answered with the next one of these. */
async function serve(t: ExecutionContext, answers: readonly ((response: ServerResponse) => void)[]): Promise<string> {
  let asked = 0;
  const server = createServer((_, response) => answers[asked++]?.(response));
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/events`;
}

const refuse =
  (status: number, text: string, type = 'text/plain; charset=utf-8') =>
  (response: ServerResponse): void =>
    void response.writeHead(status, { 'Content-Type': type }).end(text);

test('a stream is opened again when it has ended, broke or was refused, until it is for who asks', async (t) => {
  const heard: [string, string][] = [];
  const ends: (Refusal | undefined)[] = [];
  const some = new EventEmitter();
  const url = await serve(t, [
    (response) => {
      response.writeHead(200).write('event: view\ndata: {"a":1}\n\n: no answer\n\nevent: happ');
      void once(some, 'heard').then(() => {
        response.write('ened\ndata: ["é"]\n');
        response.end('\nevent: cut off\ndata:');
      });
    },
    (response) => {
      response.writeHead(200).write('event: view\ndata: {"a":2}\n\n');
      void once(some, 'heard').then(() => response.destroy());
    },
    refuse(503, '16 pages are open\n'),
    refuse(502, '<html>', 'text/html'),
    refuse(401, 'no token\n'),
    () => t.fail('it asks again'),
  ]);
  const follower = {
    heard: (event: string, data: string): void => {
      heard.push([event, data]);
      some.emit('heard');
    },
    ended: (refusal: Refusal | undefined): void => void ends.push(refusal),
  };
  await follow(url, follower, 1);
  t.deepEqual(heard, [
    ['view', '{"a":1}'],
    ['happened', '["é"]'],
    ['view', '{"a":2}'],
  ]);
  t.deepEqual(ends, [
    undefined,
    undefined,
    { status: 503, text: '16 pages are open' },
    { status: 502, text: '' },
    { status: 401, text: 'no token' },
  ]);
});
