/** `farkv build`, with a small addon in the place of farkv's own, in a package of its own. */
import test, { type ExecutionContext } from 'ava';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { inRepository } from '../bench/repository.js';
import { builtFile } from './addon-file.js';

/** Linked by the C compiler, as farkv's own: there may be no other. */
const GYPI = `{ "make_global_settings": [["LINK", "$(CC)"]], "targets": [{ "target_name": "farkv", "sources": ["addon.c"] }] }`;
/** Reports for verbs what \`text\` says. */
const addon = (text: string): string => `
#include <node_api.h>
static napi_value provider_missing(napi_env env, napi_callback_info info) {
  napi_value text;
  return napi_create_string_utf8(env, "${text}", NAPI_AUTO_LENGTH, &text) == napi_ok ? text : NULL;
}
NAPI_MODULE_INIT() {
  napi_value function;
  napi_create_function(env, NULL, 0, provider_missing, NULL, &function);
  napi_set_named_property(env, exports, "providerMissing", function);
  return exports;
}
`;
/** Loading it fails: no process has this function. */
const UNLOADABLE = `void nobody_has_this(void);\n${addon('').replace('napi_value function;', '$&\n  nobody_has_this();')}`;

interface Ran {
  readonly code: number | null;
  readonly output: string;
}

/** A package with this source. */
function made(t: ExecutionContext, source: string): string {
  // As awkward a path as a package's may be.
  const root = join(mkdtempSync(join(tmpdir(), 'farkv-source-build-')), "a 'package' of $HOME");
  t.teardown(() => rmSync(dirname(root), { recursive: true }));
  mkdirSync(join(root, 'native'), { recursive: true });
  writeFileSync(join(root, 'package.json'), '{"name":"farkv"}');
  writeFileSync(join(root, 'native/addon.gypi'), GYPI);
  writeFileSync(join(root, 'native/addon.c'), source);
  return root;
}

/** Builds it in a process of its own; `before` is a command that runs that process. */
function build(root: string, before: readonly string[] = [], temporary = dirname(root)): Ran {
  const code = `
    const { buildFromSource } = await import(${JSON.stringify(inRepository('dist/native/source-build.js'))});
    const built = buildFromSource(${JSON.stringify(root)}, ${JSON.stringify(inRepository('.'))}, (text) => console.log(text));
    console.log(JSON.stringify(built));`;
  const [program, ...args] = [...before, process.execPath, '--input-type=module', '-e', code];
  const { status, stdout, stderr } = spawnSync(program, args, {
    encoding: 'utf8',
    env: { ...process.env, TMPDIR: temporary },
  });
  return { code: status, output: `${stdout}${stderr}` };
}

test('what was built gets its place when it can be loaded, and nothing else stays', (t) => {
  const root = made(t, addon('no card'));
  const { code, output } = build(root);
  t.is(code, 0, output);
  t.deepEqual(JSON.parse(output), { file: builtFile(root), verbsMissing: 'no card' });
  const first = readFileSync(builtFile(root));
  t.deepEqual(readdirSync(dirname(builtFile(root))), ['farkv.node']);
  t.deepEqual(readdirSync(dirname(root)).length, 1);

  writeFileSync(join(root, 'native/addon.c'), UNLOADABLE);
  const unloadable = build(root);
  t.is(unloadable.code, 1);
  t.regex(unloadable.output, /what was built cannot be loaded: [^]*nobody_has_this/);
  t.deepEqual(readFileSync(builtFile(root)), first);
  t.deepEqual(readdirSync(dirname(builtFile(root))), ['farkv.node']);
});

test('it builds where the temporary folder is mounted with noexec', (t) => {
  const root = made(t, addon(''));
  const folder = join(dirname(root), 'noexec');
  mkdirSync(folder);
  const shell = ['unshare', '--mount', '--map-root-user', 'sh', '-c'];
  const mount = 'mount -t tmpfs -o noexec tmpfs "$0" && exec "$@"';
  if (spawnSync(shell[0]!, [...shell.slice(1), mount, folder, 'true']).status !== 0) {
    t.log('not tested: no process here may mount a folder (unshare)');
    t.pass();
    return;
  }
  const { code, output } = build(root, [...shell, mount, folder], folder);
  t.is(code, 0, output);
  t.true(existsSync(builtFile(root)));
});
