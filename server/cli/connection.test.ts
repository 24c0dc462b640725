import test from 'ava';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readConnection, type ConnectionArguments } from './connection.js';

const args: ConnectionArguments = {
  connect: 'db1',
  token: undefined,
  tokenFile: undefined,
  tls: false,
  tlsCa: undefined,
  tlsCert: undefined,
  tlsKey: undefined,
  secrets: undefined,
  timeout: '5s',
};

test("operators' commands take the address that clients take", (t) => {
  const plain = readConnection({ ...args, connect: 'farkv://secret@db1,db2:1?transport=tcp' });
  t.like(plain, { addresses: ['db1:7400', 'db2:1'], token: 'secret', tls: undefined });
  t.truthy(readConnection({ ...args, connect: 'farkvs://db1' }).tls);
  t.is(readConnection({ ...args, connect: 'farkv://secret@db1', token: 'other' }).token, 'other');
  t.throws(() => readConnection({ ...args, connect: 'http://db1' }), { code: 'ERR_ADDRESS_INVALID' });
});

test('a directory of secrets that cannot be used is an error, and no connection without TLS', (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'farkv-secrets-'));
  t.teardown(() => rmSync(directory, { recursive: true }));
  const refused = (secrets: string, message: RegExp): void => {
    t.throws(() => readConnection({ ...args, secrets }), { code: 'ERR_CONFIG', message });
  };
  refused(join(directory, 'nowhere'), /^--secrets: .*nowhere cannot be used: ENOENT, no such file or directory$/);
  refused(import.meta.filename, /connection\.test\.js is no directory$/);
  refused(
    directory,
    /has neither an authority \(ca\.crt\) nor a certificate \(.*operator\.crt.*\): farkv secrets init makes them$/,
  );
  writeFileSync(join(directory, 'token'), 'secret');
  t.is(readConnection({ ...args, secrets: directory }).tls, undefined, 'its servers have no TLS either');
});
