import test from 'ava';
import { FarkvError } from '../../core/errors.js';
import { checkTenants } from './tenants.js';

test('a server whose tenants are not those of the cluster does not belong to it', (t) => {
  const [a, b] = [
    { name: 'a', shards: 3 },
    { name: 'b', shards: 2 },
  ];
  const given = { ...a, token: 'secret', maxClients: 9 };
  t.notThrows(() => checkTenants([], []));
  const other = { ...b, token: 'another' };
  t.notThrows(() => checkTenants([given, other], [a, b]));
  for (const [said, made] of [
    [[], [a]],
    [[given], []],
    [[given], [b]],
    [[{ ...given, shards: 4 }], [a]],
    [[given], [a, b]],
  ] as const) {
    const error = t.throws(() => checkTenants(said, made), {
      instanceOf: FarkvError,
      code: 'ERR_CONFIG',
      message: /--tenants differs from the tenants that/,
    });
    t.false(error.message.includes('secret'));
  }
});
