import test from 'ava';
import type { PeerCertificate } from 'node:tls';
import { checkServer, roleUris, soleName } from './certificate.js';

test('a role name is an entry of its own, not a part of one', (t) => {
  t.deepEqual(roleUris('DNS:localhost, URI:farkv://prod/writer/x, IP Address:127.0.0.1'), ['farkv://prod/writer/x']);
  // As Node.js writes a name that has a comma in it.
  t.deepEqual(roleUris('DNS:"a, URI:farkv://prod/operator/x", URI:https://example.net'), []);
  t.deepEqual(roleUris('DNS:"a\\", URI:farkv://prod/operator/x"'), []);
  t.is(soleName(roleUris('URI:"farkv://prod/writer/x, URI:farkv://prod/operator/x"')), undefined);
  t.is(soleName(roleUris('URI:farkv://prod/writer/x, URI:farkv://prod/operator/x')), undefined);
  t.deepEqual(roleUris(undefined), []);
});

test('a server is known by its host or by its role name, and a role name must fit', (t) => {
  const check = (
    subjectaltname: string,
    expected: { readonly cluster?: string; readonly id?: string; readonly byRole?: boolean } = {},
  ): boolean => {
    const certificate = { subject: { CN: 'x' }, subjectaltname } as PeerCertificate;
    return checkServer('10.0.0.1', certificate, { byRole: true, ...expected }) === undefined;
  };
  const host = 'IP Address:10.0.0.1';
  t.true(check(host));
  t.false(check('IP Address:10.0.0.2'));
  t.true(check('URI:farkv://prod/peer/s1'));
  t.true(check('URI:farkv://prod/peer/*', { cluster: 'prod', id: 's2' }));
  t.true(check('URI:farkv://prod/peer/s2', { cluster: 'prod', id: 's2' }));
  t.false(check('URI:farkv://prod/peer/s1', { id: 's2' }));
  t.false(check(`${host}, URI:farkv://prod/peer/s1`, { id: 's2' }), 'the right host does not help');
  t.false(check('URI:farkv://test/peer/s1', { cluster: 'prod' }));
  t.false(check(`${host}, URI:farkv://prod/operator/x`));
  t.false(check(`${host}, URI:farkv://prod/peer/s1, URI:farkv://prod/peer/s2`));
  // With the authorities of the system roles mean nothing.
  t.false(check('URI:farkv://prod/peer/s1', { byRole: false }));
  t.true(check(host, { byRole: false }));
});
