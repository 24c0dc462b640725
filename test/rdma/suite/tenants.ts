/** Tenants over verbs: a protection domain each, so that tenants share nothing, whatever rkeys they know. */
import assert from 'node:assert/strict';
import { clientOf, toldTo } from '../../support/tenants.js';
import type { Part } from './parts.js';

const TOKENS = { a: 'of tenant a', b: 'of tenant b' } as const;
/** Of two domains at one server each, also taken in by rendezvous: bounce memory is registered for both. */
const LARGE = 1 << 20;

export const tenants: Part = [
  'two tenants: the same key has two values, and with the memory and rkeys of the other known nothing is had of it',
  async ({ cluster: start, client: connectTo }) => {
    const cluster = await start({
      servers: 1,
      shards: 1,
      args: [
        '--token',
        'of operators',
        '--tenants',
        `a,shards=2,token=${TOKENS.a}`,
        '--tenants',
        `b,shards=2,token=${TOKENS.b}`,
      ],
    });
    const [a, b] = [await connectTo(cluster, { token: TOKENS.a }), await connectTo(cluster, { token: TOKENS.b })];
    await a.put('key', 'of a');
    await b.put('key', 'of b');
    await a.put('large', Buffer.alloc(LARGE, 1));
    await b.put('large', Buffer.alloc(LARGE, 2));
    for (const [tenant, name, fill] of [
      [a, 'of a', 1],
      [b, 'of b', 2],
    ] as const) {
      assert.equal(String(await tenant.get('key')), name);
      assert.deepEqual(await tenant.get('large'), Buffer.alloc(LARGE, fill));
    }
    const { address } = cluster.server(0);
    const [toldA, toldB] = [await toldTo(address, TOKENS.a), await toldTo(address, TOKENS.b)];
    const thief = clientOf(toldB, toldA.ticket, 'verbs');
    const owner = clientOf(toldB, toldB.ticket, 'verbs');
    try {
      assert.equal((await thief.get('key', 60_000)).status, 'ERR_UNAUTHORIZED');
      assert.equal((await thief.put('key', 'of a', 60_000)).status, 'ERR_UNAUTHORIZED');
      assert.equal((await owner.get('key', 60_000)).value.toString(), 'of b');
    } finally {
      thief.close();
      owner.close();
    }
    assert.equal(String(await b.get('key')), 'of b');
  },
];
