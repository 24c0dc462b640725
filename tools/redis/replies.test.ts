import test from 'ava';
import { seeded } from '../../test/support/random.js';
import { RedisFailure, Replies, type Reply } from './replies.js';

// eslint-disable-next-line @typescript-eslint/require-await -- a stream is asynchronous
async function* pieces(bytes: Buffer, size: number): AsyncGenerator<Buffer, void, undefined> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

async function repliesOf(bytes: Buffer, count: number, size = 64, bulkMax = 100): Promise<Reply[]> {
  const replies = new Replies(pieces(bytes, size));
  replies.allow({ replies: 100, bulkMax, bytes: 1000 });
  const found: Reply[] = [];
  while (found.length < count) found.push(await replies.next());
  return found;
}

const ALL = Buffer.from(
  '+OK\r\n-ERR wrong\r\n:-12\r\n:9223372036854775807\r\n$5\r\na\r\nbc\r\n$0\r\n\r\n$-1\r\n*-1\r\n*2\r\n$1\r\nx\r\n*1\r\n:7\r\n$101\r\n' +
    `${'y'.repeat(101)}\r\n+behind\r\n`,
);
const READ: readonly Reply[] = [
  'OK',
  { error: 'ERR wrong' },
  -12,
  2 ** 63,
  Buffer.from('a\r\nbc'),
  Buffer.alloc(0),
  null,
  null,
  [Buffer.from('x'), [7]],
  { skipped: 101, start: Buffer.alloc(100, 'y') },
  'behind',
];

test('replies of every kind are read, wherever the stream is cut; a value that is too large is skipped', async (t) => {
  for (let size = 1; size < 40; size++) t.deepEqual(await repliesOf(ALL, READ.length, size), READ);
});

test('what is no reply is refused', async (t) => {
  const wrong = [
    'HTTP/1.1 400\r\n',
    ':x\r\n',
    ':9999999999999999999\r\n',
    '$-5\r\n',
    '$2\r\nabc\r\n',
    '+OK\n',
    '*9999999\r\n',
  ];
  for (const text of [...wrong, `+${'x'.repeat(70_000)}\r\n`, '*1\r\n'.repeat(9), '$99999999999\r\n'])
    await t.throwsAsync(
      repliesOf(Buffer.from(text), 1),
      { instanceOf: RedisFailure, code: 'ERR_PROTOCOL' },
      text.slice(0, 20),
    );
  await t.throwsAsync(repliesOf(Buffer.from('+no line feed'), 1), { code: 'ERR_DISCONNECTED' });
});

test('no more is taken than was allowed for what was asked', async (t) => {
  const answers = (text: string, replies: number, bytes: number) => {
    const reader = new Replies(pieces(Buffer.from(text), 7));
    reader.allow({ replies, bulkMax: 10, bytes });
    return reader;
  };
  const endless = answers(':1\r\n'.repeat(100), 3, 0);
  for (let i = 0; i < 3; i++) t.is(await endless.next(), 1);
  await t.throwsAsync(endless.next(), { instanceOf: RedisFailure, message: /more than it was asked for/ });
  endless.allow({ replies: 1, bulkMax: 0, bytes: 0 });
  t.is(await endless.next(), 1);

  await t.throwsAsync(answers('*4\r\n', 4, 0).next(), { code: 'ERR_PROTOCOL' });
  await t.throwsAsync(answers('*2\r\n*2\r\n:1\r\n:1\r\n:1\r\n', 4, 0).next(), { code: 'ERR_PROTOCOL' });

  const values = answers('$6\r\naaaaaa\r\n$6\r\nbbbbbb\r\n$4\r\ncccc\r\n', 3, 10);
  t.deepEqual(await values.next(), Buffer.from('aaaaaa'));
  t.deepEqual(await values.next(), { skipped: 6, start: Buffer.from('bbbbbb') });
  t.deepEqual(await values.next(), Buffer.from('cccc'));
});

test('any bytes are replies or are refused, and nothing else', async (t) => {
  const random = seeded(t, import.meta.filename);
  for (let i = 0; i < 2000; i++) {
    const bytes = Buffer.from(ALL);
    for (let n = random.below(4); n >= 0; n--)
      bytes[random.below(bytes.length)] = random.pick([0x2a, 0x24, 0x0d, 0x39, random.below(256)]);
    await repliesOf(bytes, READ.length, 1 + random.below(64)).catch((error: unknown) => {
      if (!(error instanceof RedisFailure)) throw error;
    });
  }
  t.pass();
});
