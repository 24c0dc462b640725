/** A keyspace over FakeNativeClient, for tests of what lies between a program and the native side. */
import { setImmediate as turn } from 'node:timers/promises';
import { BatchChanges } from '../../client/batch-changes.js';
import { BatchReads } from '../../client/batch-reads.js';
import { Keyspace } from '../../client/keyspace.js';
import { bufferCodec } from '../../client/codec.js';
import { Operations } from '../../client/operations.js';
import { Scanner } from '../../client/scan.js';
import { SpunReads } from '../../client/spun-reads.js';
import { ValueMemory } from '../../client/value-memory.js';
import { FakeNativeClient } from './fake-native-client.js';

/** A batch whose slice is used up goes on in a later turn (client/turn.ts), and until then nothing is posted. */
const QUIET_TURNS = 3;

export interface Setup {
  readonly native: FakeNativeClient;
  readonly operations: Operations;
  readonly kv: Keyspace<Uint8Array | string, Buffer>;
  /** Finishes everything, as often as something new is posted. */
  readonly settle: () => Promise<void>;
}

export function setup(
  options: {
    readonly direct?: boolean;
    readonly maxOutstanding?: number;
    readonly maxQueued?: number;
    readonly ended?: (shard: number) => string | undefined;
    readonly unavailable?: () => void;
    readonly timeoutMs?: number;
    readonly records?: number;
  } = {},
): Setup {
  const native = new FakeNativeClient(options.records);
  native.direct = options.direct ?? true;
  const values = new ValueMemory();
  const operations = new Operations(native, values, {
    maxOutstanding: options.maxOutstanding ?? 1000,
    maxQueued: options.maxQueued ?? 1000,
    explain: (shard) => `nobody answers for shard ${shard}`,
    ended: options.ended,
    unavailable: options.unavailable,
  });
  const shared = {
    operations,
    spun: new SpunReads(native, values, operations.errors),
    batches: new BatchReads(native, operations),
    changes: new BatchChanges(native, operations),
    scanner: new Scanner(operations, { first: 0, count: 2 }),
    defaults: { timeoutMs: options.timeoutMs ?? 1000 },
  };
  const settle = async (): Promise<void> => {
    for (let quiet = 0; quiet < QUIET_TURNS; quiet++) {
      await turn();
      if (native.outstanding.length === 0 && native.ready.length === 0) continue;
      native.complete();
      operations.drain();
      quiet = -1;
    }
  };
  return { native, operations, kv: new Keyspace(shared, 0, bufferCodec), settle };
}

export const text = (value: Buffer | undefined): string | undefined => value?.toString();
