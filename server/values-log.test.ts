import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import type { MetadataState } from '../core/metadata/state.js';
import type { Found } from '../core/shards/index.js';
import type { DataDirectory } from './data-directory.js';
import { isAllFound, logFailure, toldOf, valuesOf } from './values-log.js';

const OPTIONS = { id: 's1', shardMemoryMin: 1 << 20, syncMs: 50 };
const COPY = '00000000000000aa';

test('a server that answers before its disk keeps values on a disk', (t) => {
  const state = { policies: [{ level: 'cache' }], servers: [{ id: 's1' }] } as unknown as MetadataState;
  const directory = { path: '/dev/null/nowhere', ephemeral: false } as unknown as DataDirectory;
  t.throws(() => valuesOf(state, directory, OPTIONS), { code: 'ERR_CONFIG', message: /no values .* on disks/ });
  t.is(valuesOf(state, directory, { ...OPTIONS, syncMs: 0 }), undefined);
});

const found = (whole: boolean): Found => ({ shard: 0, copy: COPY, worker: 0, whole, epoch: 1, lsn: 5 });

function emptyDirectory(t: ExecutionContext): string {
  const path = mkdtempSync(join(tmpdir(), 'farkv-early-'));
  t.teardown(() => rmSync(path, { recursive: true }));
  return path;
}

/** A start of a server in a directory; `syncMs` 0: with --sync always. */
function begun(
  path: string,
  syncMs = 50,
): { early: { found: boolean }; told: (all?: boolean) => void; end: () => void } {
  const state = {
    policies: [{ level: 'durable' }],
    copySets: [],
    servers: [{ id: 's1' }, { id: 's2' }],
    members: new Map(),
    shards: [],
    clusterId: '00',
  } as unknown as MetadataState;
  const directory = { path, ephemeral: false, instance: '1' } as unknown as DataDirectory;
  const { early } = valuesOf(state, directory, { ...OPTIONS, syncMs })!;
  early.begins(syncMs);
  return { early, told: (all = true) => early.joined(all, syncMs), end: () => early.ended(true) };
}

test('a start knows whether the last one ended in order, until the metadata knows it', (t) => {
  const path = emptyDirectory(t);
  const names = (): string[] => readdirSync(join(path, 'values'));
  const first = begun(path);
  t.false(first.early.found);
  t.deepEqual(names(), ['early'], 'before anything is acknowledged');
  first.told();
  // It is killed. So is the next one, before it has joined.
  t.true(begun(path).early.found);
  const third = begun(path);
  third.end();
  t.deepEqual(names(), ['early'], 'nobody was told');
  const fourth = begun(path);
  fourth.told();
  t.deepEqual(names(), ['early'], 'it acknowledges early itself');
  fourth.end();
  t.deepEqual(names(), []);
  t.false(begun(path, 0).early.found);
  t.deepEqual(names(), [], 'with --sync always there is none');
  begun(path).told();
  const waits = begun(path, 0);
  t.true(waits.early.found, 'though this start waits for its disk');
  waits.told();
  t.deepEqual(names(), []);
});

test('what could not be read is marked by the start that can read it', (t) => {
  const path = emptyDirectory(t);
  begun(path).told();
  const second = begun(path);
  second.told(false);
  second.end();
  t.true(begun(path).early.found);
});

test('a mark stays where the log failed', (t) => {
  const path = emptyDirectory(t);
  const first = begun(path);
  first.told();
  (first.early as unknown as { ended: (isSynced: boolean) => void }).ended(false);
  t.true(begun(path).early.found);
});

test('copies that are told have the mark of their start', (t) => {
  t.deepEqual(
    toldOf([found(true), found(false)], true).map(({ early }) => early),
    [true],
  );
  t.false('early' in toldOf([found(true)], false)[0]!);
  const copies = (state: string) => ({ copySets: [{ copies: [{ member: 's1', id: COPY, state }] }] });
  const is = (state: string, all: readonly Found[]): boolean =>
    isAllFound(copies(state) as unknown as MetadataState, 's1', all);
  t.true(is('in-sync', [found(true)]));
  t.false(is('in-sync', [found(false)]));
  t.false(is('eligible', []));
  t.true(is('joining', []), 'it is none any more');
});

test('why a log failed is said with the name of the error, also of one that Node.js does not know', (t) => {
  t.regex(logFailure('/d/values', 'write', '0-1', 5).message, /^\/d\/values\/0-1: write failed: EIO, i\/o error\. /);
  t.regex(logFailure('/d/values', 'sync', '0-1', 122).message, /0-1: sync failed: EDQUOT, disk quota exceeded\. /);
});
