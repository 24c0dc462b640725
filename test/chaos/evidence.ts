/**
 * What a run leaves behind beside the clients' files, so that its histories can be judged again: `node
 * dist/test/chaos/main.js --again DIRECTORY`.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { Epoch } from './epochs.js';
import { FaultLog } from './fault-log.js';
import type { Evidence } from './judge.js';
import { addFile, emptyRecord, type Recorded } from './recorded.js';

const FILE = 'evidence.json';

interface Stored {
  readonly epochs: readonly Epoch[];
  readonly kept: readonly string[];
  readonly faults: ReturnType<FaultLog['toJSON']>;
  readonly ownerLeaseMs: number;
  readonly beganNs: number;
  /** Absent: of caches. */
  readonly replicas?: number;
  /** Absent in what earlier runs left. */
  readonly durable?: boolean;
  readonly led: Evidence['led'];
}

export function storeEvidence(
  directory: string,
  epochs: readonly Epoch[],
  { kept, led, faults, ownerLeaseMs, beganNs, replicas, durable = false }: Omit<Evidence, 'record' | 'epochsOf'>,
): void {
  writeFileSync(
    join(directory, FILE),
    JSON.stringify({
      epochs,
      kept: [...kept],
      led,
      faults: faults.toJSON(),
      ownerLeaseMs,
      beganNs,
      durable,
      ...(replicas === undefined ? {} : { replicas }),
    } satisfies Stored),
  );
}

/** Everything that clients have written down by now. */
export function recordIn(directory: string): Recorded {
  const record = emptyRecord();
  for (const name of readdirSync(directory).sort())
    if (name.endsWith('.jsonl')) addFile(record, join(directory, name), basename(name, '.jsonl'));
  return record;
}

export function loadEvidence(directory: string): Evidence {
  const { epochs, kept, led, faults, ownerLeaseMs, beganNs, replicas, durable } = JSON.parse(
    readFileSync(join(directory, FILE), 'utf8'),
  ) as Stored;
  return {
    record: recordIn(directory),
    epochsOf: (shard) => epochs.filter((e) => e.shard === shard),
    kept: new Set(kept),
    led,
    faults: FaultLog.of(faults),
    ownerLeaseMs,
    beganNs,
    replicas,
    durable,
  };
}
