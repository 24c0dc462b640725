import test from 'ava';
import { FarkvError } from '../../core/errors.js';
import { checkTrustDomains } from './trust-domains.js';

test('a server whose trust domains are not those of the cluster does not belong to it', (t) => {
  const [a, b] = [
    { name: 'a', shards: 3 },
    { name: 'b', shards: 2 },
  ];
  const given = { ...a, token: 'secret', maxClients: 9 };
  t.notThrows(() => checkTrustDomains([], []));
  const other = { ...b, token: 'another' };
  t.notThrows(() => checkTrustDomains([given, other], [a, b]));
  for (const [said, made] of [
    [[], [a]],
    [[given], []],
    [[given], [b]],
    [[{ ...given, shards: 4 }], [a]],
    [[given], [a, b]],
  ] as const) {
    const error = t.throws(() => checkTrustDomains(said, made), {
      instanceOf: FarkvError,
      code: 'ERR_CONFIG',
      message: /--tenants differs from the tenants that/,
    });
    t.false(error.message.includes('secret'));
  }
});
