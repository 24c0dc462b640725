/** Whose the files are that are made anew. */
import test from 'ava';
import { chmodSync, chownSync, statSync } from 'node:fs';
import { Certificates } from '../../test/support/certificates.js';
import { renew, renewAuthority } from './authority.js';

const [uid, gid] = [process.getuid?.() ?? 0, process.getgid?.() ?? 0];
const isRoot = uid === 0;

test('files that root makes anew stay with the user and the group that read them', async (t) => {
  const made = await Certificates.make(t);
  const name = await made.issue('farkv://prod/peer/s1');
  const whose = (file: string) => {
    const { uid: user, gid: group, mode } = statSync(made.file(file));
    return { user, group, mode: mode & 0o777 };
  };
  t.deepEqual(whose(`${name}.key`), { user: uid, group: gid, mode: 0o600 }, 'the first one is of who makes it');
  // Nobody but root may give a file away.
  const [user, group] = isRoot ? [12_345, 12_346] : [uid, gid];
  for (const [file, mode, wanted] of [
    [`${name}.key`, 0o640, 0o640],
    [`${name}.crt`, 0o644, 0o644],
    ['ca.crt', 0o444, 0o444],
    ['ca.key', 0o600, 0o600],
  ] as const) {
    const before = statSync(made.file(file)).ino;
    chownSync(made.file(file), user, group);
    chmodSync(made.file(file), mode);
    await (file.startsWith('ca.') ? renewAuthority(made.directory) : renew(made.directory, Infinity));
    t.not(statSync(made.file(file)).ino, before, file);
    t.deepEqual(whose(file), { user, group, mode: isRoot ? wanted : 0o600 }, file);
  }
});

test('a key that everybody may read is made anew for its owner and group alone', async (t) => {
  const made = await Certificates.make(t);
  const name = await made.issue('farkv://prod/peer/s1');
  chmodSync(made.file(`${name}.key`), 0o666);
  await renew(made.directory, Infinity);
  t.is(statSync(made.file(`${name}.key`)).mode & 0o137, 0);
});
