import test from 'ava';
import { changeLine, compareCounts, countOwn, parsePaths, perRound, type Kept } from './counts.js';

/** As callgrind writes it: names once, then numbers; inlined code; what is called is not the caller's. */
const dump = (own: number): string => `# callgrind format
events: Ir
fl=(1) /src/farkv/native/client/lookup/direct.c
fn=(1) lookup_direct
10 ${own}
+2 5
fi=(2) /src/farkv/native/client/lookup/../../table/reader.h
7 20
fe=(1)
-1 3
cfi=(3) ./string/memcpy.S
cfn=(9) memcpy
calls=4 0
12 100000
* 1
cfi=(6) /src/farkv/native/wire/wire.c
cfn=(7) wire_read
calls=1 0
13 50

fl=(3)
fn=(9)
1 100000
fl=(4) /src/farkv/native/test/client/puppet.c
fn=(5) do_poll
3 77777

fl=(6)
fn=(7)
1 50
`;

test("the instructions of the project's own files are counted, inlined ones too, without what they call", (t) => {
  t.is(countOwn(dump(10), ['client', 'table']), 39);
  t.is(countOwn(dump(10), ['table']), 20);
  t.is(countOwn(dump(10), ['wire']), 50);
  t.is(countOwn(dump(10).replaceAll('/src/', '/tmp/native/fabric/'), ['fabric']), 0);
});

test('what both runs do once falls away', (t) => {
  const paths = parsePaths('a GET\t100\tclient,table\n');
  t.deepEqual(paths, [{ name: 'a GET', rounds: 100, folders: ['client', 'table'] }]);
  t.deepEqual(perRound(paths, [dump(999_999), dump(5000), dump(9000)]), { 'a GET': 40 });
  t.throws(() => perRound(paths, [dump(1), dump(9000), dump(9000)]), { message: /instructions in 200 rounds/ });
  t.throws(() => perRound(paths, [dump(1)]), { message: /1 dumps/ });
});

const kept = (counts: Record<string, number>, madeWith = 'gcc 12'): Kept => ({ madeWith, counts });

test('a path that grew by over 5 % is a problem, one that shrank or grew by less is none', (t) => {
  const problem = (now: number): string | undefined =>
    compareCounts(kept({ get: 1000 }), kept({ get: now }))[0]?.problem;
  t.is(problem(1050), undefined);
  t.is(problem(1051), 'it grew by over 5 %');
  t.is(problem(500), undefined);
});

test('paths that are new or gone, and other compilers, are problems', (t) => {
  const problems = (before: Kept | undefined, now: Kept): (string | undefined)[] =>
    compareCounts(before, now).map((c) => c.problem);
  t.deepEqual(problems(kept({ get: 1 }), kept({ get: 1, put: 2 })), [undefined, 'no count is kept']);
  t.deepEqual(problems(kept({ get: 1, put: 2 }), kept({ get: 1 })), [undefined, 'it is no longer measured']);
  t.deepEqual(problems(undefined, kept({ get: 1 })), ['no count is kept']);
  t.deepEqual(problems(kept({ get: 1 }), kept({ get: 1 }, 'gcc 14')), ['the counts kept are of gcc 12, not gcc 14']);
});

test('a line says both counts and the change', (t) => {
  t.regex(changeLine({ name: 'get', before: 200, now: 190, problem: undefined }), /^get +200\.0 +190\.0 +-5\.0 %$/);
  t.regex(
    changeLine({ name: 'get', before: undefined, now: 190, problem: 'no count is kept' }),
    /^get +- +190\.0 +no count is kept$/,
  );
});
