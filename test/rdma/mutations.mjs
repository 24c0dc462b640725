/**
 * npm run test:rdma -- --mutations: takes what makes verbs safe out of the provider, one piece at a time, and looks
 * whether the C test that is named with it fails over soft-RoCE or soft-iWARP. The programs are compiled here and run
 * in one virtual machine. Prints a line for each; exits with 1 if a mutation survives. A word as argument: those whose
 * name has it.
 */
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { NativeTree } from '../../scripts/mutations/checks/native.mjs';
import { occurrences } from '../../scripts/mutations/checks/text.mjs';
import { by, inFile } from '../../scripts/mutations/checks/in-file.mjs';

const root = resolve(dirname(fileURLToPath(import.meta.url)), '../..');
const over = (device) => (test) => by('fabric_verbs')(test, { device });
const [rxe, siw] = [over('rxe'), over('siw')];

const mutations = [
  ...inFile('native/fabric/verbs/cm.c', [
    [
      "rdma_connect is called at the completion queue's thread",
      siw('connecting_to_nobody_holds_up_no_other_connection'),
      'if (verbs_dial_begin(c, &p))',
      'if (c->cq->d->v->rdma_connect(c->id, &p))',
    ],
    [
      'an owner speaks first over iWARP',
      siw('an_owner_posts_nothing_before_it_may'),
      '->transport_type == IBV_TRANSPORT_IWARP;',
      '->transport_type == 0;',
    ],
  ]),
  ...inFile('native/fabric/verbs/conn.c', [
    [
      'what ran out of time is told of a message of which nobody hears',
      rxe('what_the_device_never_completes_ends_in_time'),
      'while (oldest != c->sq_head && c->sq[oldest % VERBS_SQ].kind != VERBS_SQ_READ) oldest++;',
      '',
    ],
  ]),
  ...inFile('native/fabric/verbs/dial.c', [
    [
      'a call that waits is not interrupted',
      siw('connecting_to_nobody_holds_up_no_other_connection'),
      'if (interrupt_signal) pthread_kill(a->thread, interrupt_signal);',
      '',
    ],
  ]),
  ...inFile('native/fabric/verbs/poll.c', [
    [
      'the set-up of a connection has no end',
      siw('connecting_to_nobody_ends_in_time_and_as_failed'),
      'if (now < c->deadline_ns) continue;',
      'continue;',
    ],
    [
      'when something was posted is never noted',
      rxe('what_the_device_never_completes_ends_in_time'),
      '        see(c, now);\n',
      '',
    ],
  ]),
  ...inFile('native/fabric/verbs/post.c', [
    [
      'the upper half of an rkey is not looked at',
      rxe('a_wrong_rkey_is_refused'),
      'r[i].rkey >> 32 ? FAB_REM_ACCESS_ERR : FAB_SUCCESS',
      'FAB_SUCCESS',
    ],
  ]),
  ...inFile('native/fabric/verbs/domain.c', [
    [
      'a lost device is bound again',
      rxe('a_client_lets_a_lost_device_go_and_binds_anew'),
      'if (d->lost) {',
      'if (false) {',
    ],
    [
      'buffers keep their registration with a lost device',
      rxe('a_client_lets_a_lost_device_go_and_binds_anew'),
      'm->registered = 0;',
      '',
    ],
    [
      'all tenants share a protection domain',
      rxe('a_region_of_another_tenant_is_refused'),
      'if (p->tenant == tenant) {',
      'if (p) {',
    ],
  ]),
].filter(({ name }) => name.includes(process.argv[2] ?? ''));

/** In the guest: runs each; the line says how it ended, for how long a mutant waits is bounded. */
const GUEST = `
declare -A at=([rxe]=10.9.0 [siw]=10.8.0)
while read -r program device test; do
  silent=; [ $device = rxe ] || silent=1
  env \${silent:+FARKV_VERBS_SILENT=1} FARKV_VERBS_ADDRESS=\${at[$device]}.1 FARKV_VERBS_NOBODY=\${at[$device]}.77 FARKV_TEST=$test FARKV_PATIENCE_MS=20000 \\
    timeout 200 $program < /dev/null > /tmp/out 2>&1
  code=$?
  echo "$program $code $(tr '\\n' ' ' < /tmp/out)"
done < "$FARKV_MUTANTS/list"`;

const mutants = mkdtempSync(join(tmpdir(), 'farkv-rdma-mutants-'));
const tree = new NativeTree(root);
let survived = 0;
try {
  const list = [];
  for (const [i, mutation] of mutations.entries()) {
    const { name, file, find, caughtBy } = mutation;
    const places = occurrences(readFileSync(join(root, file), 'utf8'), find);
    const { target, why } =
      places === 1 ? await tree.build(mutation) : { why: `the text to replace occurs ${places} times in ${file}` };
    if (target === undefined) {
      survived++;
      console.log(`SURVIVED  ${name}: ${why}`);
      continue;
    }
    const program = join(mutants, String(i));
    copyFileSync(target, program);
    list.push({ ...caughtBy, name, program });
  }
  writeFileSync(
    join(mutants, 'list'),
    list.map(({ program, device, test }) => `${program} ${device} ${test}\n`).join(''),
  );
  const env = { ...process.env, FARKV_MUTANTS: mutants };
  const ran = spawnSync(join(root, 'test/rdma/vm/vm.sh'), ['-m', '2048', '-t', '1800', GUEST], {
    cwd: root,
    env,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  for (const { name, program, test } of list) {
    const line = ran.stdout.split('\n').find((l) => l.startsWith(`${program} `)) ?? '';
    const caught = line.includes(` ${test}: failed: `) || line.includes(`${test}: still running when its alarm came`);
    if (!caught) survived++;
    console.log(
      `${caught ? 'caught  ' : 'SURVIVED'}  ${name.padEnd(62)} ${caught ? test : line.slice(program.length, 300)}`,
    );
  }
} finally {
  tree.remove();
  rmSync(mutants, { recursive: true, force: true });
}
console.log(`${mutations.length - survived} of ${mutations.length} mutations caught`);
process.exitCode = survived === 0 && mutations.length > 0 ? 0 : 1;
