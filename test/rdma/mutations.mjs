/**
 * npm run test:rdma -- --mutations: takes what makes verbs safe out of the provider, one piece at a time, and looks
 * whether the C test that is named with it fails over soft-RoCE or soft-iWARP. The programs are compiled here and run
 * in one virtual machine. Prints a line for each; exits with 1 if a mutation survives. A word as argument: those whose
 * name has it.
 */
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { NativeTree } from '../../scripts/mutations/checks/native.mjs';
import { allMarkers } from '../../scripts/mutations/checks/markers.mjs';
import { mutations as rows } from './verbs.mjs';

const root = resolve(dirname(fileURLToPath(import.meta.url)), '../..');
const fileOf = new Map(allMarkers(root).map(({ name, file }) => [name, file]));
const mutations = rows
  .map((row) => ({ ...row, file: fileOf.get(row.name) }))
  .filter(({ name }) => name.includes(process.argv[2] ?? ''));

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
    const { name, file, caughtBy } = mutation;
    const { target, why } =
      file === undefined ? { why: 'it has no marker in the sources' } : await tree.build(mutation);
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
