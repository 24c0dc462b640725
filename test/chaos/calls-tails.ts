/** The calls that have an owner make an entry from the present one (calls.ts). */
import type { Call } from './calls.js';
import { overwriting, type Caller } from './caller.js';
import { drawTail, type ChaosKey, type Form } from './keys.js';
import { digitOf, makePiece } from './tails.js';

/** Longer than any run: what ends sooner would take what was counted with it. */
const LONG_MS = 24 * 3_600_000;

const draw = (c: Caller, of: 'c' | 'l'): ChaosKey => drawTail(c.random, c.client.generation(), of);

async function increment(c: Caller, form: Form): Promise<void> {
  const key = draw(c, 'c');
  const [view, name] = [c.view(key.space), c.named(key, form)];
  const { number: client, name: own } = c.client;
  const asked = { kind: 'increment', id: `${own}-${c.client.written++}`, client } as const;
  await c.changeTail(`increment ${form}`, key, asked, async () => ({
    result: String(await overwriting(view.increment(name, digitOf(client), c.limits()), name)),
  }));
}

/** Mostly short; some make the list too long for a message. */
async function append(c: Caller, form: Form): Promise<void> {
  const key = draw(c, 'l');
  const [view, name] = [c.view(key.space), c.named(key, form)];
  const { number: client, name: own } = c.client;
  const asked = { kind: 'append', id: `${own}-${c.client.written++}`, client } as const;
  const piece = makePiece(asked.id, c.random.below(20) === 0 ? c.random.below(3000) : c.random.below(20));
  await c.changeTail(`append ${form}`, key, asked, async () => ({
    result: String(await overwriting(view.append(name, piece, c.limits()), name, piece)),
  }));
}

async function touch(c: Caller, form: Form): Promise<void> {
  const key = draw(c, c.random.below(2) === 0 ? 'c' : 'l');
  const [view, name] = [c.view(key.space), c.named(key, form)];
  const ttlMs = c.random.pick([LONG_MS, null]);
  await c.changeTail(`touch ${form}`, key, { kind: 'touch' }, () =>
    overwriting(view.touch(name, { ...c.limits(), ttlMs }), name),
  );
}

export const TAILS: readonly Call[] = [
  { name: 'increment', weight: 6, run: increment, changes: true, plain: (kv, key) => kv.increment(key) },
  { name: 'append', weight: 6, run: append, changes: true, plain: (kv, key) => kv.append(key, '0') },
  { name: 'touch', weight: 3, run: touch, changes: true, plain: (kv, key) => kv.touch(key) },
];
