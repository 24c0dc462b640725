import test from 'ava';
import { auditCall, credentialEnded, limitedAudit, loginFailed, watchCredentials } from './audit.js';
import { Log, type LogFields } from './log.js';

const WHO = { role: 'operator', name: 'alice', address: '10.0.0.1:5' } as const;

test('a change names who asked for it, what it is about, and how it ended', (t) => {
  t.deepEqual(auditCall(WHO, 'shard-move', { shard: 3, to: 's2', more: 'x' }, 'ok'), {
    event: 'shard-move',
    ...WHO,
    shard: 3,
    to: 's2',
    result: 'ok',
  });
  t.like(auditCall(WHO, 'drain', { id: 's1', draining: true }, 'ERR_BUSY'), { id: 's1', result: 'ERR_BUSY' });
  t.is(auditCall(WHO, 'status', {}, 'ok'), undefined);
  t.is(auditCall(undefined, 'drain', { id: 's1' }, 'ok'), undefined);
});

test('the level of a replication is not taken for the level of the line', (t) => {
  const fields = auditCall(WHO, 'replication-set', { tenant: 'a', level: 'replicated', replicas: 2 }, 'ok');
  t.like(fields, { tenant: 'a', replicationLevel: 'replicated', replicas: 2 });
  t.false(Object.hasOwn(fields ?? {}, 'level'));
});

test('no secret and nothing unforeseen of a call is written', (t) => {
  const hash = 'ab'.repeat(32);
  const made = auditCall(WHO, 'join-token-add', { hash, ttlMs: 5 }, 'ok');
  t.like(made, { ttlMs: 5, joinToken: 'abababab' });
  const shown = auditCall({ ...WHO, role: 'peer' }, 'join', { instance: '0a0b0c0d', token: 'a secret' }, 'ok', 's4');
  t.like(shown, { server: 's4', joinToken: /^[0-9a-f]{8}$/.exec(String(shown?.joinToken))?.[0] });
  t.regex(String(shown?.directory), /^[0-9a-f]{8}$/);
  t.false(JSON.stringify([made, shown]).includes('a secret'));
  t.false(JSON.stringify(shown).includes('0a0b0c0d'));
  t.false(JSON.stringify(made).includes(hash));
  for (const args of [undefined, null, 7, 'text', [], { id: { deep: 'x' } }, { id: 'a\nb' }])
    t.notRegex(JSON.stringify(auditCall(WHO, 'member-remove', args, 'ERR_PROTOCOL')), /deep|(?<!\\)\\n|text/);
});

test('a file of credentials that cannot be used is named once, whoever says what is wrong', (t) => {
  const said: string[] = [];
  const { unusable } = watchCredentials(new Log('info', (_level, text) => said.push(text)))('/etc/farkv/s1.crt');
  unusable?.(new Error('PEM routines::no start line'));
  unusable?.(new Error('/etc/farkv/s1.crt is empty'));
  t.deepEqual(said, [
    'changed credentials are not used yet: /etc/farkv/s1.crt: PEM routines::no start line',
    'changed credentials are not used yet: /etc/farkv/s1.crt is empty',
  ]);
});

test('failed logins are written so often and then counted, whatever they say', (t) => {
  const written: LogFields[] = [];
  const lines = limitedAudit(new Log('error', (_, __, fields) => fields !== undefined && written.push(fields)));
  t.deepEqual(loginFailed('ERR_CONFIG', '10.0.0.1:5', 'peer', 'the wrong port'), {
    event: 'connection-refused',
    address: '10.0.0.1:5',
    as: 'peer',
    code: 'ERR_CONFIG',
  });
  for (let i = 0; i < 100; i++)
    lines.say('', loginFailed('ERR_UNAUTHORIZED', '10.0.0.1:5', 'client', `wrong\n${'x'.repeat(1000)}`));
  t.is(written.length, 20);
  t.like(written[0], { event: 'login-failed', address: '10.0.0.1:5', as: 'client' });
  t.regex(String(written[0]?.reason), /^wrong\\nx{100,300}$/);
});

test('what succeeded is written beside any number of failures, and failures of one kind leave room for another', (t) => {
  const written: LogFields[] = [];
  const lines = limitedAudit(new Log('error', (_, __, fields) => fields !== undefined && written.push(fields)));
  const joiner = { ...WHO, role: 'joiner' } as const;
  const join = (result: 'ok' | 'ERR_UNAUTHORIZED', server: string): LogFields => {
    const fields = auditCall(joiner, 'join', {}, result, server);
    if (fields === undefined) throw new Error('a join is in the audit');
    return fields;
  };
  for (let i = 0; i < 100; i++) {
    lines.say('', loginFailed('ERR_UNAUTHORIZED', '10.0.0.1:5', 'peer', 'wrong'));
    lines.say('', join('ERR_UNAUTHORIZED', 's9'));
    lines.say('a connection was refused', loginFailed('ERR_CONFIG', '10.0.0.1:5', 'peer', 'the wrong port'));
  }
  lines.say('', join('ok', 's4'));
  lines.say('', credentialEnded(WHO, 'its certificate has expired'));
  const of = (event: string, result?: string): number =>
    written.filter((one) => one.event === event && one.result === result).length;
  t.is(of('login-failed'), 20);
  t.is(of('join', 'ERR_UNAUTHORIZED'), 20);
  t.is(of('join', 'ok'), 1);
  t.is(of('credential-ended'), 1);
  t.is(of('connection-refused'), 0, 'of level info, and not of the audit');
});
