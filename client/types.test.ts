/**
 * What the compiler must say of the SDK's types: this file compiles, or `npm test` ends before it runs. Nothing is
 * executed but one trivial test.
 */
import test from 'ava';
import type {
  BufferValue,
  Client,
  Codec,
  Entry,
  Keyspace,
  PreparedKey,
  ScanEntry,
  ScanKey,
  Swap,
  Updated,
} from './index.js';
import { connect } from './index.js';

// Two generic functions are one type only if A and B are.
// eslint-disable-next-line @typescript-eslint/no-unnecessary-type-parameters
type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
/** exactly<A>()(value) compiles only if the type of value is A, no wider and no narrower. */
const exactly =
  <A>() =>
  <B>(value: B, ...same: Equal<A, B> extends true ? [] : [never]): unknown => [value, same];

interface User {
  readonly name: string;
}

/** Never called: only its types matter. */
export async function checked(celsius: Codec<number, { readonly degrees: number }>): Promise<void> {
  const plain = await connect('127.0.0.1:7400');
  exactly<Client<BufferValue, Buffer>>()(plain);
  exactly<Buffer | undefined>()(await plain.get('k'));
  await plain.put('k', 'text');
  await plain.put('k', new Uint8Array(1), { ttlMs: 5, flags: 1 });
  // @ts-expect-error -- with the buffer codec a value is bytes or text
  await plain.put('k', 5);
  // @ts-expect-error -- a key is bytes or text
  await plain.get(5);
  const prepared = plain.key('k');
  exactly<PreparedKey>()(prepared);
  exactly<Buffer | undefined>()(await plain.get(prepared));
  exactly<PreparedKey>()(plain.key(prepared));
  // @ts-expect-error -- only key() makes prepared keys
  await plain.get(new BigUint64Array(4));

  const users = await connect<User>({ servers: ['a', 'b'], codec: 'msgpack' });
  exactly<Client<User>>()(users);
  exactly<User | undefined>()(await users.get('k'));
  exactly<(User | undefined)[]>()(await users.getMany(['a', Buffer.from('b')]));
  exactly<boolean>()(await users.has('k'));
  exactly<number>()(await users.deleteMany(['k', prepared]));
  exactly<number | null | undefined>()(await users.ttl('k'));
  exactly<number | Promise<number>>()(users.getManyInto(['a'], Buffer.alloc(1), new Uint32Array(2)));
  exactly<Entry<User> | undefined>()(await users.getEntry('k'));
  exactly<Updated>()(await users.update('k', (user) => (user === undefined ? undefined : { name: user.name })));
  // @ts-expect-error -- not a User
  await users.update('k', () => 5);
  exactly<Swap>()(await users.compareAndSwap('k', 0n, { name: 'Ada' }));
  // @ts-expect-error -- not a User
  await users.put('k', { nome: 'Ada' });
  // @ts-expect-error -- versions are bigints
  await users.compareAndSwap('k', 0, { name: 'Ada' });
  const unknown = await connect({ servers: 'a', codec: 'msgpack' });
  exactly<Client<unknown>>()(unknown);

  const own = await connect({ servers: 'a', codec: celsius });
  exactly<Client<number, { readonly degrees: number }>>()(own);
  await own.put('k', 5);
  exactly<{ readonly degrees: number } | undefined>()(own.getSync('k'));
  exactly<number | undefined | Promise<number | undefined>>()(own.getInto('k', new Uint8Array(8)));

  for await (const each of users.scan()) exactly<ScanKey>()(each);
  for await (const each of users.scan({ values: true })) exactly<ScanEntry<User>>()(each);
  const space = users.namespace(5).withCodec('buffer');
  exactly<Keyspace<BufferValue, Buffer>>()(space);
  // A view has no connection of its own to close.
  exactly<'close' extends keyof typeof space ? 1 : 2>()(2 as const);
  await using scoped = users;
  // @ts-expect-error -- unknown options are refused
  await connect({ servers: 'a', transprot: 'tcp' });
  await scoped.close();
}

test('the types of the SDK are what is promised', (t) => {
  t.is(typeof checked, 'function');
});
