/**
 * A mutation of a C source: in a copy of native/ that stays, so that make compiles what the mutation touches and no
 * more, and the one test that is named is run. It must fail on a check of its own, or, where a sanitizer is named, by
 * that sanitizer's report; neither a compiler's error, nor a crash elsewhere, nor running for too long counts.
 *
 * Waits of the tests are checks too: FARKV_PATIENCE_MS is how long they wait for what a mutant never brings.
 */
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { run } from './process.mjs';
import { mutate } from './markers.mjs';

const PATIENCE_MS = 3_000;
const SEED = 20240229;

const providers = readdirSync(join(import.meta.dirname, '../../../native/fabric'), { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => `fabric/${name}`);
const FABRIC = ['fabric', ...providers.sort()].join(' ');
const DATA_PLANE = 'bulk replication/rules dataplane storage replication serve';

/** What a test program needs, so that nothing else is compiled. */
const PARTS = [
  { of: /^(table|protocol_model)/, parts: 'base table', support: ['check', 'protocol_machine'] },
  { of: /^log_/, parts: 'base log', support: ['check', 'memory_disk', 'log_rig'] },
  {
    of: /^fabric_verbs_device$/, // also with memory of a client's session
    parts: `base wire ${FABRIC} client/session`,
    support: ['check', 'fabric_*'],
  },
  { of: /^fabric/, parts: `base ${FABRIC}`, support: ['check', 'smaps', 'fabric_*', 'tcp_*', 'shm_raw'] },
  { of: /^fetch$/, parts: `base table wire ${FABRIC} bulk`, support: ['check', 'fabric_pair', 'shm_raw'] },
  { of: /^resp/, parts: 'base wire resp', support: ['check'] },
  { of: /^/, parts: `base log table wire ${FABRIC} ${DATA_PLANE} client/session client/lookup client`, support: ['*'] },
];

/** What make is told: where to build, what, and without warnings, since a mutation may leave something unused. */
function variables(program, sanitizer) {
  const { parts, support } = PARTS.find(({ of }) => of.test(program));
  const at = `../build/${parts.replaceAll(/[ /]/g, '-')}${sanitizer === undefined ? '' : `-${sanitizer}`}`;
  const sources = `$(filter-out %_test.c,$(wildcard ${support.map((name) => `test/${name}.c test/*/${name}.c`).join(' ')}))`;
  const common = [`B=${at}`, `DIRS=${parts}`, `SUPPORTSRC=${sources}`, 'WARN=-w', 'OPTIMIZE=-O1'];
  return { at, list: sanitizer === undefined ? common : [...common, `SAN=${sanitizer}`] };
}

/** By program, test and sanitizer: whether it passes without a mutation, which it must to prove anything. */
const proofs = new Map();

/** A copy of native/, in which what is needed is built when it is first needed; `at` is where. */
export class NativeTree {
  #mutated;

  /** `root` is the project's folder. */
  constructor(root) {
    this.at = mkdtempSync(join(tmpdir(), 'farkv-mutation-'));
    cpSync(join(root, 'native'), join(this.at, 'native'), { recursive: true });
  }

  remove() {
    rmSync(this.at, { recursive: true, force: true });
  }

  /** The program that is named, with the mutation in it: where it is, or why there is none. */
  async build(mutation) {
    const path = join(this.at, mutation.file);
    this.#write(path, mutate(this.#original(path), mutation));
    return await this.#make(mutation.caughtBy);
  }

  async #make({ program, sanitizer }) {
    const { at, list } = variables(program, sanitizer);
    const native = join(this.at, 'native');
    const folder = readdirSync(join(native, 'test')).find((name) =>
      existsSync(join(native, 'test', name, `${program}_test.c`)),
    );
    if (folder === undefined) return { why: `there is no program ${program}` };
    const target = `${at}/test/${folder}/${program}`;
    const built = await run('make', ['-s', '-j2', ...list, target], native);
    return built.code === 0
      ? { target: join(native, target) }
      : { why: `does not compile: ${built.output.slice(0, 300)}` };
  }

  /** What caught it, or why nothing did. */
  async check(mutation) {
    const { program, test, sanitizer, runs = 1 } = mutation.caughtBy;
    const fault = await this.#fault(mutation.caughtBy);
    if (fault !== undefined) return { why: fault };
    const { target, why } = await this.build(mutation);
    if (why !== undefined) return { why };
    let seed = SEED;
    const once = () => this.#run(target, test, seed, PATIENCE_MS);
    let { code, signal, output, late } = await once();
    while (code === 0 && ++seed < SEED + runs) ({ code, signal, output, late } = await once());
    if (late) return { why: 'ran for too long' };
    if (code === 0) return { why: 'the test passes' };
    if (output.includes(` ${test}: failed: `)) return { caught: `${program}_test.c: ${test}` };
    if (output.includes('farkv: broken invariant at'))
      return { caught: `${program}_test.c: ${test} (an invariant of the product)` };
    if (sanitizer !== undefined && output.includes('Sanitizer'))
      return { caught: `${program}_test.c: ${test} (${sanitizer} sanitizer)` };
    return { why: `the test ends by ${signal ?? code}, not on a check` };
  }

  /** Why the test cannot catch anything: it does not pass as the sources are. */
  async #fault(caughtBy) {
    const { program, test, sanitizer } = caughtBy;
    const key = `${program} ${test} ${sanitizer}`;
    if (!proofs.has(key)) proofs.set(key, this.#proof(caughtBy));
    return await proofs.get(key);
  }

  async #proof(caughtBy) {
    this.#restore();
    const { target, why } = await this.#make(caughtBy);
    if (why !== undefined) return why;
    const { code, output } = await this.#run(target, caughtBy.test, SEED);
    if (/ 0 tests/.test(output)) return `there is no test ${caughtBy.test}`;
    return code === 0 ? undefined : `${caughtBy.test} fails without the mutation, too`;
  }

  #run(target, test, seed, patienceMs) {
    const env = { FARKV_TEST: test, FARKV_SEED: String(seed) };
    if (patienceMs !== undefined) env.FARKV_PATIENCE_MS = String(patienceMs);
    return run(target, [], join(this.at, 'native'), env);
  }

  #restore() {
    if (this.#mutated !== undefined) this.#write(this.#mutated.path, this.#mutated.source);
    this.#mutated = undefined;
  }

  /** The source without the mutation before, which is taken back. */
  #original(path) {
    if (this.#mutated?.path !== path) {
      this.#restore();
      this.#mutated = { path, source: readFileSync(path, 'utf8') };
    }
    return this.#mutated.source;
  }

  /** Make compares times of files: what is written now must be newer than the object of what was there. */
  #write(path, text) {
    writeFileSync(path, text);
    const now = new Date();
    utimesSync(path, now, now);
  }
}
