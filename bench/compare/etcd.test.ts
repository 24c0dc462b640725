import test from 'ava';
import { putMessage } from './etcd.js';

test('a PUT for etcd is a gRPC message: not compressed, its length, then key and value with theirs', (t) => {
  const message = putMessage('key', Buffer.alloc(200, 7));
  t.is(message[0], 0);
  t.is(message.readUInt32BE(1), message.length - 5);
  t.deepEqual([...message.subarray(5, 13)], [0x0a, 3, 107, 101, 121, 0x12, 0xc8, 1]);
  t.deepEqual(message.subarray(13), Buffer.alloc(200, 7));
});
