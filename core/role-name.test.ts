import test from 'ava';
import { claimsRole, formatRoleName, parseRoleName } from './role-name.js';

test('a role name is read as it is written', (t) => {
  for (const name of [
    { cluster: 'prod', role: 'peer', name: 's1' },
    { cluster: 'prod', role: 'peer', name: '*' },
    { cluster: 'prod.eu-1', role: 'operator', name: 'alice' },
    { cluster: 'prod', role: 'writer', name: 'shop' },
    { cluster: 'prod', role: 'reader', tenant: 'a', name: 'report' },
  ] as const)
    t.deepEqual(parseRoleName(formatRoleName(name)), name);
});

test('what is not wholly a role name is none, and is known to claim a role', (t) => {
  for (const uri of [
    'farkv://prod',
    'farkv://prod/writer',
    'farkv://prod/writer/',
    'farkv:///writer/x',
    'farkv://prod/root/x',
    'farkv://prod/Writer/x',
    'farkv://prod/operator/tenant/x',
    'farkv://prod/peer/tenant/s1',
    'farkv://prod/writer/a/b/c',
    'farkv://prod/writer/*',
    'farkv://prod/writer/x?y',
    'farkv://prod/writer/x ',
    'farkv://u@prod/writer/x',
    'FARKV://prod/writer/x',
    'farkv:prod/writer/x',
  ]) {
    t.is(parseRoleName(uri), undefined, uri);
    t.true(claimsRole(uri), uri);
  }
  for (const uri of ['https://prod/writer/x', 'spiffe://farkv/writer/x', '']) t.false(claimsRole(uri), uri);
});
