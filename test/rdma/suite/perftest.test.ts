import test, { type ExecutionContext } from 'ava';
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { perftest, type Figure } from './perftest.js';

const LINE = ' 64      2000          48.10          210.00       49.70';

/**
 * A tool whose server ends at once, and whose client runs these commands of the shell; `$runs` says how often it was
 * started.
 */
function tool(t: ExecutionContext, commands: string): Figure & { readonly runs: () => number } {
  const place = mkdtempSync(join(tmpdir(), 'farkv-test-'));
  t.teardown(() => rmSync(place, { recursive: true, force: true }));
  const path = join(place, 'ib_read_lat');
  const count = join(place, 'runs');
  writeFileSync(count, '');
  writeFileSync(
    path,
    `#!/bin/sh\n[ "$3" = there ] || exit 0\necho run >> ${count}\nruns=$(grep -c . ${count})\n${commands}\n`,
  );
  chmodSync(path, 0o755);
  return {
    tool: path,
    words: ['-s', '64'],
    address: 'there',
    bytes: 64,
    column: 4,
    runs: () => readFileSync(count, 'utf8').split('\n').length - 1,
  };
}

test('the figure is the column of the line with the size', async (t) => {
  const said: string[] = [];
  const figure = tool(t, `printf '#bytes  #iterations\\n${LINE}\\n'`);
  t.is(await perftest(figure, undefined, (text) => said.push(text)), 49.7);
  t.deepEqual(said, []);
});

test('a client that is refused comes again until the server listens', async (t) => {
  const figure = tool(t, `[ $runs -ge 3 ] || exit 1\necho '${LINE}'`);
  t.is(await perftest(figure), 49.7);
  t.is(figure.runs(), 3);
});

test('what printed nothing is said and tried again', async (t) => {
  const said: string[] = [];
  const figure = tool(t, `[ $runs -ge 2 ] || exit 0\necho '${LINE}'`);
  t.is(await perftest(figure, undefined, (text) => said.push(text)), 49.7);
  t.is(said.length, 1);
  t.regex(said[0]!, /not measured: .*ib_read_lat printed nothing and ended with 0 \(attempt 1 of 3\)/);
});

test('what prints nothing in time, however often it is tried, is not measured and fails nothing', async (t) => {
  const said: string[] = [];
  t.is(await perftest(tool(t, 'exec sleep 1000'), { attempts: 2, limitMs: 300 }, (text) => said.push(text)), undefined);
  t.is(said.length, 2);
  for (const text of said) t.regex(text, /ib_read_lat printed nothing in 0.3 s/);
});

test('a tool that is not installed is not measured', async (t) => {
  const figure = { tool: '/nowhere/ib_read_lat', words: [], address: 'there', bytes: 64, column: 4 };
  t.is(await perftest(figure, { attempts: 1, limitMs: 60_000 }, () => undefined), undefined);
});
