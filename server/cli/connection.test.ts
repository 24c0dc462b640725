import test from 'ava';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { tokenFor } from './client-options.js';
import { tlsFile } from '../../test/support/tls-files.js';
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

test.serial('the token of an address goes before those of the environment, and the one of an option before it', (t) => {
  const connect = 'farkv://mine@db1';
  for (const [name, value] of [
    ['FARKV_TOKEN', 'of the environment'],
    ['FARKV_TOKEN_FILE', '/nowhere'],
  ] as const) {
    process.env[name] = value;
    try {
      t.is(readConnection({ ...args, connect }).token, 'mine');
      t.is(tokenFor({ ...args, connect, secrets: undefined }, ['writer', 'reader']), 'mine');
      t.is(readConnection({ ...args, connect, token: 'option' }).token, 'option');
    } finally {
      Reflect.deleteProperty(process.env, name);
    }
  }
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

test('where --secrets has tokens and no certificate of an operator, as a server has, its token is shown', (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'farkv-secrets-'));
  t.teardown(() => rmSync(directory, { recursive: true }));
  const file = (name: string, text: string): void => writeFileSync(join(directory, name), text, { mode: 0o600 });
  const token = (more: Partial<ConnectionArguments> = {}): string | undefined =>
    readConnection({ ...args, secrets: directory, ...more }).token;
  file('ca.crt', readFileSync(tlsFile('ca.pem'), 'utf8'));
  file('token', 'of writers');
  t.is(token(), undefined);
  file('monitor-token', 'of monitors');
  t.is(token(), 'of monitors');
  file('operator-token', 'of operators');
  t.is(token(), 'of operators');
  t.is(tokenFor({ ...args, connect: 'db1', secrets: directory }, ['writer', 'reader']), 'of writers');
  t.is(token({ token: 'given' }), 'given');
  t.is(token({ connect: 'farkvs://mine@db1' }), 'mine');
  file('operator.crt', 'a certificate');
  file('operator.key', 'its key');
  t.is(tokenFor({ ...args, connect: 'db1', secrets: directory }, ['operator']), undefined);
});
