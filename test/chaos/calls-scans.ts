/** Scans, and the calls that neither read nor change a key (calls.ts). */
import { connect, type ScanEntry, type ScanKey } from '../../client/index.js';
import type { Call } from './calls.js';
import { now, type Caller } from './caller.js';
import { EMPTY_NAMESPACE, idOfBytes, keyOfId, MSGPACK_NAMESPACE, NAMESPACES, type Form } from './keys.js';

/** An entry of a scan is a read of its key, at some time between the scan's call and now. Answers with the key's id. */
function sawEntry(
  c: Caller,
  via: string,
  space: number,
  entry: ScanKey & Partial<ScanEntry<Buffer>>,
  call: number,
): string | undefined {
  const id = idOfBytes(space, entry.key);
  if (id === undefined) {
    c.wrong(
      via,
      call,
      `${via} of namespace ${space} gave a key that nobody writes: ${entry.key.subarray(0, 40).toString('hex')}, ${entry.key.length} bytes`,
    );
    return undefined;
  }
  const key = keyOfId(id);
  // Its bytes are the program's too, and lie beside the values.
  c.client.held.add({
    key: id,
    id: 'key',
    by: `${c.lane} ${via}`,
    cameNs: now(),
    look: () =>
      entry.key.equals(key.bytes)
        ? { id: 'key' }
        : { wrong: `the key's own bytes are ${entry.key.subarray(0, 40).toString('hex')}` },
  });
  c.named(key, 'Buffer');
  if (entry.value !== undefined) c.saw(via, key, entry.value, call, now(), entry);
  else c.sawListed(via, key, entry, call);
  return id;
}

/** A namespace as a scan or a count asks for it: all of it, or what begins as one of its keys does. */
function drawPart(c: Caller): { readonly space: number; readonly prefix?: Buffer } {
  if (c.random.below(2) === 0) return { space: c.random.pick(NAMESPACES) };
  const { space, bytes } = c.key();
  return { space, prefix: Buffer.from(bytes.subarray(0, 1 + c.random.below(6))) };
}

const latin1 = (prefix: Buffer | undefined): { readonly prefix?: string } =>
  prefix === undefined ? {} : { prefix: prefix.toString('latin1') };

/** Every key of a namespace, or with a prefix. */
async function scan(c: Caller): Promise<void> {
  const { space, prefix } = drawPart(c);
  const values = c.random.below(2) === 0;
  const via = values ? 'scan values' : 'scan keys';
  const batch = 1 + c.random.below(c.random.below(2) === 0 ? 30 : 2000);
  const options = { timeoutMs: 3000, batch, ...(prefix === undefined ? {} : { prefix }) };
  const keys = new Set<string>();
  const call = now();
  const whole = await c.read(via, async () => {
    for await (const entry of values ? c.view(space).scan({ ...options, values }) : c.view(space).scan(options)) {
      const id = sawEntry(c, via, space, entry, call);
      if (id !== undefined) keys.add(id);
      if (prefix !== undefined && !entry.key.subarray(0, prefix.length).equals(prefix))
        c.wrong(via, call, `${via} gave a key without its prefix`);
    }
  });
  if (whole) c.client.record.scan({ lane: c.lane, via }, { space, ...latin1(prefix), call, end: now() }, [...keys]);
}

/** Of a namespace into which nobody writes it is known; of others by what was written (scans.ts). */
async function count(c: Caller): Promise<void> {
  const call = now();
  await c.read('count', async () => {
    const none = await c.view(EMPTY_NAMESPACE).count(c.limits());
    if (none !== 0) c.wrong('count', call, `${none} keys in a namespace into which nobody writes`);
    const all = await c.view(c.random.pick(NAMESPACES)).count({ ...c.timeout(), prefix: 'nobody writes' });
    if (all !== 0) c.wrong('count', call, `${all} keys that begin as nobody's do`);
    const { space, prefix } = drawPart(c);
    const began = now();
    const counted = await c.view(space).count({ timeoutMs: 3000, ...(prefix === undefined ? {} : { prefix }) });
    const asked = { space, ...latin1(prefix), call: began, end: now() };
    c.client.record.counted({ lane: c.lane, via: 'count' }, asked, counted);
  });
}

/** One page; most often of a namespace without keys, whose steps carry nothing. */
async function scanPage(c: Caller): Promise<void> {
  const space =
    c.random.below(3) > 0 ? EMPTY_NAMESPACE : c.random.pick(NAMESPACES.filter((one) => one !== MSGPACK_NAMESPACE));
  const values = c.random.below(3) > 0;
  const via = values ? 'scanPage values' : 'scanPage keys';
  const options = { ...c.limits(), batch: 1 + c.random.below(64) };
  const call = now();
  await c.read(via, async () => {
    const page = values ? await c.view(space).scanPage({ ...options, values }) : await c.view(space).scanPage(options);
    for (const entry of page.entries) sawEntry(c, via, space, entry, call);
    if (page.cursor === undefined) return;
    const first = page.entries[0];
    if (first !== undefined) {
      const prefix = first.key.subarray(0, 1 + c.random.below(3));
      const some = await c.view(space).scanPage({ ...options, prefix });
      for (const entry of some.entries) {
        sawEntry(c, via, space, entry, call);
        if (!entry.key.subarray(0, prefix.length).equals(prefix))
          c.wrong(via, call, `${via} gave a key without its prefix`);
      }
    }
    // Kept as text, and given to another view.
    const next = await c.client.kv.namespace(space).scanPage({ ...options, cursor: page.cursor });
    for (const entry of next.entries) sawEntry(c, via, space, entry, call);
  });
}

/** Several views of the same entry. */
async function views(c: Caller, form: Form): Promise<void> {
  const key = c.plainKey();
  const via = `namespace and withCodec ${form}`;
  const call = now();
  await c.read(via, async () => {
    const view = c.client.kv.withCodec('msgpack').namespace(key.space).withCodec('buffer');
    c.saw(via, key, await view.get(c.named(key, form), c.limits()), call, now());
  });
}

async function prepare(c: Caller, form: Form): Promise<void> {
  const key = c.key();
  const via = `key ${form}`;
  const call = now();
  await c.read(via, () => {
    // Of another namespace, or of a prepared one, it names the same bytes.
    const prepared = c.view(c.random.pick(NAMESPACES)).key(c.named(key, form));
    const shard = c.view(key.space).shardOf(prepared);
    if (shard !== c.view(key.space).shardOf(key.bytes))
      c.wrong(via, call, `${key.id} is of shard ${shard} when it is prepared`, key);
  });
}

async function shardOf(c: Caller, form: Form): Promise<void> {
  const key = c.key();
  await c.read(`shardOf ${form}`, () => c.view(key.space).shardOf(c.named(key, form)));
}

async function counters(c: Caller): Promise<void> {
  await c.read('transports', () => c.client.kv.transports());
  await c.read('stats', () => c.client.kv.stats());
  const call = now();
  await c.read('metrics', () => {
    for (const { name, type, samples } of c.client.kv.metrics())
      for (const { value } of samples)
        if (!Number.isFinite(value) || (type === 'counter' && value < 0))
          c.wrong('metrics', call, `${name} is ${value}`);
  });
}

/** A client of its own that comes, reads and goes; what it was given stays as it is. */
function shortLived(via: 'close' | 'asyncDispose') {
  return async (c: Caller, form: Form): Promise<void> => {
    const key = c.plainKey();
    const call = now();
    await c.read(via, async () => {
      const kv = await connect({ ...c.client.connection, connectTimeoutMs: 2000 });
      try {
        c.saw(via, key, await kv.namespace(key.space).get(c.named(key, form), { timeoutMs: 2000 }), call, now());
      } finally {
        await (via === 'close' ? kv.close() : kv[Symbol.asyncDispose]());
      }
    });
  };
}

export const SCANS: readonly Call[] = [
  { name: 'scan', weight: 0.5, run: scan },
  { name: 'count', weight: 0.8, run: count },
  { name: 'scanPage', weight: 4, run: scanPage },
];

export const OTHERS: readonly Call[] = [
  { name: 'key', weight: 1, run: prepare, plain: (kv, key) => kv.key(key) },
  { name: 'shardOf', weight: 0.5, run: shardOf, plain: (kv, key) => kv.shardOf(key) },
  { name: 'namespace', weight: 1, run: views, plain: (kv, key) => kv.namespace(7).get(key) },
  { name: 'withCodec', weight: 1, run: views, plain: (kv, key) => kv.withCodec('buffer').get(key) },
  { name: 'transports', weight: 0.2, run: counters },
  { name: 'stats', weight: 0.2, run: counters },
  { name: 'metrics', weight: 0.2, run: counters },
  { name: 'close', weight: 0.02, run: shortLived('close') },
  { name: 'asyncDispose', weight: 0.02, run: shortLived('asyncDispose') },
];
