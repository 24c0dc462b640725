/** Replays the inputs that the fuzzer kept (corpus/), and those that targets begin with. */
import test from 'ava';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { inRepository } from '../../bench/repository.js';
import { decodeInput } from './input.js';
import { TARGETS } from './targets.js';

for (const target of TARGETS) {
  test(`${target.name}: nothing is broken by what the fuzzer kept`, async (t) => {
    const folder = inRepository('test/fuzz/corpus', target.name);
    const names = existsSync(folder) ? readdirSync(folder) : [];
    const rig = await target.open();
    t.teardown(() => rig.close());
    for (const input of target.first) await rig.run(input);
    for (const name of names) {
      const input = decodeInput(readFileSync(inRepository('test/fuzz/corpus', target.name, name)));
      await t.notThrowsAsync(async () => rig.run(input), name);
    }
    t.true(names.length > 0);
  });
}
