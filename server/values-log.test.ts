import test from 'ava';
import type { MetadataState } from '../core/metadata/state.js';
import { checkMayGrow } from './admin-calls.js';
import type { DataDirectory } from './data-directory.js';
import { valuesOf } from './values-log.js';

test('a server that answers before its disk is refused in a cluster of several, and lets nobody join', (t) => {
  const state = { policies: [{ level: 'durable' }], servers: [{ id: 's1' }, { id: 's2' }] } as unknown as MetadataState;
  const directory = { path: '/dev/null/nowhere', ephemeral: false } as unknown as DataDirectory;
  const options = { id: 's1', memoryBytes: 1 << 26, shardMemoryMin: 1 << 20, syncMs: 50 };
  t.throws(() => valuesOf(state, directory, options), {
    code: 'ERR_CONFIG',
    message: /has 2 servers.*start this server with --sync always/,
  });
  const inMemory = { ...state, policies: [{ level: 'cache' }] } as unknown as MetadataState;
  t.throws(() => valuesOf(inMemory, directory, options), { code: 'ERR_CONFIG', message: /no values .* on disks/ });
  t.is(valuesOf(inMemory, directory, { ...options, syncMs: 0 }), undefined);
  t.throws(() => checkMayGrow({ syncMs: 50 }, 's2'), { code: 'ERR_CONFIG', message: /then let s2 join/ });
  t.notThrows(() => checkMayGrow({ syncMs: 0 }, 's2'));
});
