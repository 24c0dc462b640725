/** Changes of the present entry through the addon, over shared memory and tcp: arguments in, results out. */
import test from 'ava';
import { DEVICELESS } from '../../test/support/deviceless.js';
import { Driver, Plane } from '../../test/support/native-pair.js';

for (const provider of DEVICELESS) {
  test(`${provider}: what an owner makes of the present entry is answered`, async (t) => {
    const plane = await Plane.start({ provider });
    const client = Driver.to(plane);
    const sum = async (by: bigint): Promise<bigint> => BigInt.asIntN(64, (await client.increment('n', by)).result);
    t.is(await sum(5n), 5n);
    t.is(await sum(-7n), -2n);
    t.is(await sum(-(2n ** 63n) + 2n), -(2n ** 63n));
    t.is((await client.increment('n', -1n)).status, 'ERR_NOT_INTEGER');
    t.is(await sum(2n ** 63n - 1n), -1n);
    t.is(String((await client.get('n')).value), '-1');
    t.is((await client.append('a', 'one')).result, 3n);
    t.is((await client.append('a', ',two')).result, 7n);
    t.is(String((await client.get('a')).value), 'one,two');
    t.is((await client.increment('a', 1n)).status, 'ERR_NOT_INTEGER');
    t.is((await client.increment('n', 1n, 0, 1)).status, 'ERR_CODEC');
    t.is((await client.append('a', 'x'.repeat(8193))).status, 'ERR_VALUE_TOO_LARGE');
    t.is((await client.get('a')).result, 0n);
    t.is((await client.touch('a', 3_600_000)).status, 'OK');
    const { result } = await client.get('a');
    t.true(result > 0n);
    t.is((await client.append('a', '!', 5)).status, 'OK');
    t.is((await client.get('a')).result, result);
    t.is((await client.touch('none', 5)).status, 'NOT_FOUND');
    for (const by of [2n ** 63n, -(2n ** 63n) - 1n, 1 as unknown as bigint])
      t.is((await client.increment('n', by)).status, 'ERR_PROTOCOL');
    t.is((await client.touch('n', -1)).status, 'ERR_PROTOCOL');
    t.is((await client.increment('', 1n)).status, 'ERR_KEY_INVALID');
    client.close();
    await plane.close();
  });
}
