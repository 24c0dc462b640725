/**
 * The SDK within a realm of its own, as a program of node:vm or a test runner has it: its modules are evaluated in a new
 * context, whose Uint8Array, Map, Error and so on are not those of Node.js. Run with --experimental-vm-modules; prints
 * what its calls answered, as JSON.
 */
import { readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createContext, runInContext, SourceTextModule, SyntheticModule, type Module } from 'node:vm';

const GIVEN =
  'AbortController AbortSignal Buffer URL URLSearchParams TextDecoder TextEncoder console performance process ' +
  'queueMicrotask clearImmediate clearInterval clearTimeout setImmediate setInterval setTimeout';
const given = Object.fromEntries(
  GIVEN.split(' ').map((name) => [name, (globalThis as unknown as Record<string, unknown>)[name]]),
);
const context = createContext(given);
const modules = new Map<string, Module>();

async function load(url: string): Promise<Module> {
  const known = modules.get(url);
  if (known !== undefined) return known;
  let made: Module;
  if (url.startsWith('file:')) {
    made = new SourceTextModule(readFileSync(fileURLToPath(url), 'utf8'), {
      context,
      identifier: url,
      initializeImportMeta: (meta) =>
        Object.assign(meta, { url, filename: fileURLToPath(url), dirname: dirname(fileURLToPath(url)) }),
    });
  } else {
    const exports = (await import(url)) as Readonly<Record<string, unknown>>;
    made = new SyntheticModule(
      Object.keys(exports),
      function () {
        for (const [name, value] of Object.entries(exports)) this.setExport(name, value);
      },
      { context, identifier: url },
    );
  }
  modules.set(url, made);
  return made;
}

const resolved = (specifier: string, from: string): string =>
  specifier.startsWith('.')
    ? new URL(specifier, from).href
    : specifier.startsWith('node:')
      ? specifier
      : import.meta.resolve(specifier);

const client = await load(new URL('../../client/index.js', import.meta.url).href);
await client.link((specifier, from) => load(resolved(specifier, from.identifier)));
await client.evaluate();

/** What the program does; it is compiled in the context. */
const program = `async ({ connect }, servers) => {
  const kv = await connect({ servers, connectTimeoutMs: 30_000, timeoutMs: 30_000, signal: new AbortController().signal });
  const bytes = (...of) => new Uint8Array(of);
  const target = new Uint8Array(4);
  await kv.put(bytes(1), bytes(2, 3));
  await kv.putMany([{ key: bytes(4), value: bytes(5) }]);
  const into = await kv.getInto(bytes(1), target, 1);
  const spans = new Uint32Array(4);
  const many = new Uint8Array(8);
  const used = await kv.getManyInto([bytes(1), bytes(4)], many, spans);
  const typed = kv.withCodec('msgpack');
  await typed.put('typed', { map: new Map([['a', 1]]), at: new Date(0), of: bytes(9) });
  const wrong = await kv.get(7).catch((error) => error.code);
  const updated = await kv.update(bytes(1), (value) => bytes(...value, 4));
  const back = await typed.get('typed');
  const answer = {
    own: bytes(1) instanceof Uint8Array, foreign: Buffer.alloc(1) instanceof Uint8Array,
    got: [...(await kv.get(bytes(1)))], into, target: [...target], used, many: [...many.subarray(0, used)],
    typed: { ...back, at: Number(back.at), of: [...back.of] }, wrong, changed: updated.changed,
    keys: await kv.count({ prefix: bytes(1) }), deleted: await kv.deleteMany([bytes(4)]),
  };
  await kv.close();
  return answer;
}`;
const run = runInContext(`(${program})`, context) as (sdk: unknown, servers: string) => Promise<unknown>;
process.stdout.write(JSON.stringify(await run(client.namespace, process.argv[2] ?? '')));
