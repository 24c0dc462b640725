/** NativeClient's getMany, putMany and deleteMany: what is answered at once, what later, and how keys cross. */
import test from 'ava';
import { NO_VALUE, PENDING_BASE, PENDING_STATUS, CompletionField } from '../native-client.js';
import { isSameHost } from '../../core/providers.js';
import { DEVICELESS } from '../../test/support/deviceless.js';
import { Driver, Plane } from '../../test/support/native-pair.js';

const WORDS: number = CompletionField.Words;

for (const provider of DEVICELESS) {
  test(`${provider}: getMany answers at once what it can and the rest later`, async (t) => {
    // Over shm nothing is answered at once without a lease, which a busy machine may outlast.
    const plane = await Plane.start({ provider, leaseMs: 60_000 });
    const client = Driver.to(plane);
    const keys = Array.from({ length: 100 }, (_, i) => (i % 2 === 0 ? `many-${i}` : Buffer.from(`many-${i}`)));
    await Promise.all(keys.map((key, i) => client.put(key, `value ${i}`)));
    for (const round of [0, 1]) {
      const records = new Uint32Array((keys.length + 2) * WORDS);
      const target = Buffer.alloc(1 << 16);
      const asked = [...keys, 'absent', ''];
      const pending = client.native.getMany(0, asked, target, 100, records, 10_000);
      const isPending = (i: number): boolean => records[i * WORDS + CompletionField.Status] === PENDING_STATUS;
      const later = asked.map((_, i) => (isPending(i) ? client.adopt(records[i * WORDS]!) : undefined));
      for (const [i] of asked.entries()) {
        const at = i * WORDS;
        const outcome = await later[i];
        const length = records[at + CompletionField.Bytes]!;
        const offset = records[at + CompletionField.Offset]!;
        if (i < keys.length)
          t.is(outcome?.value.toString() ?? target.toString('utf8', offset, offset + length), `value ${i}`);
        const status = outcome?.status ?? records[at + CompletionField.Status];
        if (i === keys.length) t.is(status, outcome === undefined ? 1 : 'NOT_FOUND');
        if (i > keys.length) t.is(records[at + CompletionField.Status], 3);
      }
      t.is(later.filter((l) => l !== undefined).length, pending);
      if (isSameHost(provider) && round === 1) t.is(pending, 0);
      if (provider === 'tcp') t.is(pending, keys.length + 1);
    }
    client.close();
    await plane.close();
  });

  test(`${provider}: putMany posts as many as there is room for, and nothing behind the first that found none`, async (t) => {
    const plane = await Plane.start({ provider });
    const client = Driver.to(plane, { maxOutstanding: 4 });
    await client.put('warm', 'up');
    const answers = new Uint32Array(12);
    const keys = ['a', Buffer.from('b'), '', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j'];
    const values = keys.map((_, i) => Buffer.from(`value ${i}`));
    const pending = client.native.putMany(0, keys, values, 5, answers, 10_000);
    t.true(pending >= 4 && answers[11] === 0);
    const sent = await Promise.all(
      [...answers.subarray(0, 11)]
        .filter((answer) => answer >= PENDING_BASE)
        .map((answer) => client.adopt(answer - PENDING_BASE)),
    );
    t.is(sent.length, pending);
    t.deepEqual(
      sent.map(({ status }) => status),
      sent.map(() => 'OK'),
    );
    t.is(answers[2], 3, 'an empty key');
    const full = answers.findIndex((answer, i) => i !== 2 && answer < PENDING_BASE);
    t.true(full < 0 || answers.subarray(full, 11).every((answer) => answer === answers[full]));
    const got = await client.get('b');
    t.deepEqual([got.value.toString(), got.codec], ['value 1', 5]);
    t.throws(() => client.native.putMany(0, ['a', 'b'], [values[0]!], 0, answers, 1000), { code: 'ERR_PROTOCOL' });
    t.throws(() => client.native.putMany(0, ['a', 'b'], values.slice(0, 2), 0, new Uint32Array(1), 1000), {
      code: 'ERR_PROTOCOL',
    });
    t.throws(
      () => client.native.putMany(0, new Array<string>(1025).fill('a'), values, 0, new Uint32Array(1025), 1000),
      { code: 'ERR_PROTOCOL' },
    );
    client.close();
    t.throws(() => client.native.putMany(0, [], [], 0, answers, 1000), { code: 'ERR_CLOSED' });
    await plane.close();
  });

  test(`${provider}: deleteMany says of each key whether it was there, and posts nothing behind the first without room`, async (t) => {
    const plane = await Plane.start({ provider });
    const client = Driver.to(plane, { maxOutstanding: 4 });
    await client.put('a', '1');
    await client.put('c', '2');
    const answers = new Uint32Array(8);
    const keys = ['a', '', 'b', Buffer.from('c'), 'd', 'e', 'f', 'g'];
    const pending = client.native.deleteMany(0, keys, answers, 10_000);
    const sent = [...answers].filter((answer) => answer >= PENDING_BASE);
    t.true(pending >= 4 && pending === sent.length);
    const ended = await Promise.all(sent.map((answer) => client.adopt(answer - PENDING_BASE)));
    t.deepEqual(
      ended.map(({ status }) => status),
      ['OK', 'NOT_FOUND', 'OK', ...new Array<string>(pending - 3).fill('NOT_FOUND')],
    );
    t.is(answers[1], 3, 'an empty key');
    const full = answers.findIndex((answer, i) => i !== 1 && answer < PENDING_BASE);
    t.true(full < 0 || answers.subarray(full).every((answer) => answer === answers[full]));
    t.throws(() => client.native.deleteMany(0, ['a', 'b'], new Uint32Array(1), 1000), { code: 'ERR_PROTOCOL' });
    client.close();
    t.throws(() => client.native.deleteMany(0, [], answers, 1000), { code: 'ERR_CLOSED' });
    await plane.close();
  });

  test(`${provider}: the keys of a batch may come as one text, which is used where it says what the keys are`, async (t) => {
    const plane = await Plane.start({ provider });
    const client = Driver.to(plane, { maxOutstanding: 2000 });
    const put = async (keys: readonly string[], ...text: [string?, Uint32Array?]): Promise<number[]> => {
      const answers = new Uint32Array(keys.length);
      client.native.putMany(
        0,
        keys,
        keys.map((_, i) => Buffer.from(`value ${i}`)),
        0,
        answers,
        10_000,
        ...text,
      );
      await Promise.all(
        [...answers].filter((answer) => answer >= PENDING_BASE).map((answer) => client.adopt(answer - PENDING_BASE)),
      );
      return [...answers].map((answer) => (answer >= PENDING_BASE ? 0 : answer));
    };
    const get = async (keys: readonly string[], ...text: [string?, Uint32Array?]): Promise<string[]> => {
      const records = new Uint32Array(keys.length * WORDS);
      const target = Buffer.alloc(1 << 16);
      client.native.getMany(0, keys, target, 0, records, 10_000, ...text);
      return await Promise.all(
        keys.map(async (_, i) => {
          const at = i * WORDS;
          const status = records[at + CompletionField.Status]!;
          const offset = records[at + CompletionField.Offset]!;
          if (status === PENDING_STATUS)
            return await client
              .adopt(records[at]!)
              .then((got) => (got.status === 'OK' ? got.value.toString() : 'absent'));
          if (status === 1) return 'absent';
          return status === 0
            ? target.toString('utf8', offset, offset + records[at + CompletionField.Bytes]!)
            : `status ${status}`;
        }),
      );
    };
    const lengths = (keys: readonly string[]): Uint32Array => Uint32Array.from(keys, (key) => key.length);
    const named = ['a', 'bc', '', 'd'.repeat(1024), 'e'.repeat(1025), 'fg'];
    t.deepEqual(await put(named, named.join(''), lengths(named)), [0, 0, 3, 0, 3, 0]);
    // Other keys in the array tell which of the two was read.
    const other = ['1', '2', '3', '4', '5', '6'];
    const expected = ['value 0', 'value 1', 'status 3', 'value 3', 'status 3', 'value 5'];
    t.deepEqual(await get(named), expected);
    t.deepEqual(await get(other, named.join(''), lengths(named)), expected, 'the text is read');
    const none = other.map(() => 'absent');
    t.deepEqual(await get(other, named.join(''), lengths(named).subarray(1)), none, 'a length is missing');
    t.deepEqual(await get(other, `${named.join('')}x`, lengths(named)), none, 'the text is longer than its parts');
    t.deepEqual(await get(other, named.join('').slice(1), lengths(named)), none, 'shorter');
    t.deepEqual(await get(other, named.join(''), new Uint8Array(8) as never), none, 'lengths of another kind');
    t.deepEqual(await get(other, 7 as never, lengths(named)), none, 'no text');
    // Not ASCII: lengths in characters are not lengths in bytes.
    const umlauts = ['ä', 'öü', '\ud83d', '\ude00'];
    t.deepEqual(await put(umlauts, umlauts.join(''), lengths(umlauts)), [0, 0, 3, 3]);
    t.deepEqual(
      await get(umlauts),
      ['value 0', 'value 1', 'status 3', 'status 3'],
      'what is half a character is no key, as it is for put',
    );
    t.deepEqual(await get(umlauts, umlauts.join(''), lengths(umlauts)), await get(umlauts));
    // As much as there is room for, and more, of which a part is not read.
    const most = Array.from({ length: 65 }, (_, i) => String(i).padStart(1024, 'm'));
    t.deepEqual(
      await put(most, most.join(''), lengths(most)),
      most.map(() => 0),
    );
    const nothing = most.map(() => 'none');
    t.deepEqual(
      await get(nothing.slice(1), most.slice(0, 64).join(''), lengths(most)),
      most.slice(1).map((_, i) => `value ${i}`),
    );
    t.deepEqual(
      await get(nothing, most.join(''), lengths(most)),
      most.map(() => 'absent'),
    );
    const cut = most.map((key, i) => (i === 64 ? 'm'.repeat(7) : key));
    t.deepEqual(
      await get(nothing, `${cut.join('')}more that is cut`, lengths(cut)),
      most.map(() => 'absent'),
    );
    const more = Array.from({ length: 1025 }, () => 'a');
    t.deepEqual(
      await get(
        more.map(() => 'none'),
        more.join(''),
        lengths(more),
      ),
      more.map(() => 'absent'),
      'more keys than lengths are kept of',
    );
    client.close();
    await plane.close();
  });

  test(`${provider}: getMany says the size of what does not fit`, async (t) => {
    const plane = await Plane.start({ provider });
    const client = Driver.to(plane);
    for (const key of ['a', 'b', 'c']) await client.put(key, Buffer.alloc(100, key));
    for (const key of ['a', 'b', 'c']) await client.get(key);
    const records = new Uint32Array(3 * WORDS);
    const pending = client.native.getMany(0, ['a', 'b', 'c'], Buffer.alloc(250), 0, records, 10_000);
    if (isSameHost(provider)) {
      t.is(pending, 0);
      t.deepEqual(
        [0, 1, 2].map((i) => records[i * WORDS + CompletionField.Status]),
        [0, 0, 20],
      );
      t.is(records[2 * WORDS + CompletionField.Bytes], 100);
      t.is(records[2 * WORDS + CompletionField.Offset], NO_VALUE);
      t.is(client.native.info[CompletionField.Bytes], 200, 'where the values end');
    } else {
      const values = await Promise.all([0, 1, 2].map((i) => client.adopt(records[i * WORDS]!)));
      t.deepEqual(
        values.map(({ value }) => value.length),
        [100, 100, 100],
      );
    }
    client.close();
    await plane.close();
  });
}
