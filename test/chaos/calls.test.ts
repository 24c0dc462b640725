/**
 * No public method of what connect() gives is missing from the histories: the table of calls is compared with the
 * classes themselves, and a run's record with the table.
 */
import test from 'ava';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import * as sdk from '../../client/index.js';
import { CALLS } from './calls.js';

/** Methods and accessors of a class, as a program can call them; a symbol by its name. */
function methodsOf(made: { readonly prototype: object }): string[] {
  return Reflect.ownKeys(made.prototype)
    .filter((name) => name !== 'constructor')
    .map((name) => (typeof name === 'symbol' ? (name.description ?? '').replace(/^.*\./u, '') : name));
}

const called = new Set(CALLS.map(({ name }) => name));

test('every method of a client and of its views is called by the histories, and nothing else is in their table', (t) => {
  const methods = new Set([...methodsOf(sdk.Keyspace), ...methodsOf(sdk.Client)]);
  t.deepEqual(
    [...methods].filter((name) => !called.has(name)),
    [],
    'methods without a row in calls.ts',
  );
  t.deepEqual(
    [...called].filter((name) => !methods.has(name)),
    [],
    'rows of calls.ts without a method',
  );
  t.is(CALLS.length, called.size);
});

/** What else a program can import is made known here, so that a class or function that comes is looked at. */
test('what the SDK exports is what the histories know', (t) => {
  // Client and Keyspace are above; connect makes every client; codecs are those of the views; the rest is no call.
  t.deepEqual(Object.keys(sdk).sort(), [
    'ABSENT',
    'Client',
    'FarkvError',
    'Keyspace',
    'bufferCodec',
    'connect',
    'metricsText',
    'msgpackCodec',
  ]);
});

test('the types of client, view and prepared key have no member that the classes do not show', (t) => {
  const file = fileURLToPath(new URL('../../client/index.d.ts', import.meta.url));
  const program = ts.createProgram([file], {
    target: ts.ScriptTarget.ES2023,
    module: ts.ModuleKind.NodeNext,
    moduleResolution: ts.ModuleResolutionKind.NodeNext,
    lib: ['lib.es2023.d.ts', 'lib.esnext.disposable.d.ts'],
    types: ['node'],
  });
  const checker = program.getTypeChecker();
  const source = program.getSourceFile(file);
  const exported = source === undefined ? [] : checker.getExportsOfModule(checker.getSymbolAtLocation(source)!);
  const membersOf = (name: string): string[] => {
    const symbol = exported.find((one) => one.name === name)!;
    const aliased = (symbol.flags & ts.SymbolFlags.Alias) === 0 ? symbol : checker.getAliasedSymbol(symbol);
    return checker
      .getPropertiesOfType(checker.getDeclaredTypeOfSymbol(aliased))
      .map((m) => /asyncDispose/u.exec(m.name)?.[0] ?? m.name)
      .filter((one) => !one.startsWith('__#') && !one.startsWith('#'));
  };
  t.deepEqual(
    membersOf('Client').filter((one) => !called.has(one)),
    [],
  );
  t.deepEqual(
    membersOf('Keyspace').filter((one) => !called.has(one)),
    [],
  );
  // A mark, and no method: every call takes one in the place of a key.
  t.is(membersOf('PreparedKey').length, 1);
});

test('every method whose first argument is a key, or has keys in it, is called with every form of one', (t) => {
  const keyless = ['scan', 'scanPage', 'count', 'transports', 'stats', 'metrics', 'close', 'asyncDispose'];
  t.deepEqual(
    CALLS.filter(({ plain }) => plain === undefined)
      .map(({ name }) => name)
      .sort(),
    keyless.sort(),
  );
});
