// What a step needs of the machine. A need is a function that returns undefined where the machine has it, else
// { packages } to install, or { text }.
import { spawnSync } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';

const works = (command, args, input) =>
  spawnSync(command, args, { input, stdio: ['pipe', 'ignore', 'ignore'] }).status === 0;

function installed(program) {
  return (process.env.PATH ?? '').split(':').some((folder) => {
    try {
      accessSync(join(folder, program), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

export const tool =
  (program, packages = program) =>
  () =>
    installed(program) ? undefined : { packages };

/** Debian packages, of a step whose own script would install them: nothing is installed unasked. */
export const debian =
  (...names) =>
  () => {
    const lacking = names.filter((name) => {
      const { stdout } = spawnSync('dpkg-query', ['-W', '-f', '${Status}', name], { encoding: 'utf8' });
      return stdout?.includes('ok installed') !== true;
    });
    return lacking.length === 0 ? undefined : { packages: lacking.join(' ') };
  };

/** Compiles and links a program with the fuzzer's library, which clang itself does not bring. */
export function fuzzer() {
  const target =
    '#include <stddef.h>\nint LLVMFuzzerTestOneInput(const char *p, size_t n) { return p == NULL && n == 1; }\n';
  const args = ['-fsanitize=fuzzer,address,undefined', '-x', 'c', '-', '-o', '/dev/null'];
  return works('clang', args, target) && installed('llvm-cov') ? undefined : { packages: 'clang libclang-rt-dev llvm' };
}

export function rdmaHeaders() {
  const source = '#include <infiniband/verbs.h>\n#include <rdma/rdma_cma.h>\n';
  return works('cc', ['-fsyntax-only', '-x', 'c', '-'], source)
    ? undefined
    : { packages: 'libibverbs-dev librdmacm-dev' };
}

/** The step mounts file systems or runs a virtual machine on a Debian kernel. */
export function rootOnDebian() {
  if (process.getuid() !== 0) return { text: 'run as root' };
  return installed('apt-get') ? undefined : { text: 'run on Debian' };
}

export function namespaces() {
  const args = ['--mount', '--pid', '--fork', '--kill-child', '--mount-proc', 'true'];
  return works('unshare', args) ? undefined : { text: 'run where mounts and namespaces are allowed (unshare)' };
}

/** What is missing, in one line; undefined where nothing is. */
export function missing(needs = []) {
  const lacking = needs.map((need) => need()).filter((one) => one !== undefined);
  if (lacking.length === 0) return undefined;
  const packages = new Set(lacking.flatMap((one) => one.packages?.split(' ') ?? []));
  const install = packages.size === 0 ? [] : [`apt-get install ${[...packages].join(' ')}`];
  return [...lacking.flatMap(({ text }) => text ?? []), ...install].join('; ');
}
