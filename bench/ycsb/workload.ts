/**
 * The core workload of one benchmark thread: chooses an operation and a record, makes the values, asks the database,
 * measures.
 *
 * One value holds a whole record (record.ts), so an update of one field reads the record first, whatever the database:
 * both calls count as one UPDATE. A read-modify-write has the record already and only writes it back. Latencies are
 * taken around the database's calls; choosing keys and making values stay outside, as in YCSB.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { isPromise, type Database, type MaybePromise } from './databases/database.js';
import { FieldValues } from './field-values.js';
import { DiscreteGenerator } from './generators/discrete.js';
import type { Generator } from './generators/generator.js';
import { HistogramGenerator, type LengthHistogram } from './generators/histogram.js';
import { SharedCounter } from './generators/shared-counter.js';
import { ConstantGenerator, UniformGenerator } from './generators/uniform.js';
import { ZipfianGenerator } from './generators/zipfian.js';
import { KeyChooser } from './key-chooser.js';
import { KeyNames } from './key-name.js';
import type { Measurements, Status } from './measurements.js';
import type { Parameters } from './parameters.js';
import type { Random } from './random.js';
import { replaceField } from './record.js';

export type Operation = 'READ' | 'UPDATE' | 'INSERT' | 'READMODIFYWRITE';

/** What all threads of a run share. */
export interface SharedState {
  /** SharedCounter: numbers of the load's records. */
  readonly loads: SharedArrayBuffer;
  /** SharedCounter: numbers of the run's inserts. */
  readonly inserts: SharedArrayBuffer;
  /** SequentialGenerator. */
  readonly sequence: SharedArrayBuffer;
}

/** Nanoseconds on this thread's monotonic clock. */
export function nowNs(): number {
  return performance.now() * 1e6;
}

function lengthGenerator(p: Parameters, random: Random, histogram: LengthHistogram | undefined): Generator {
  switch (p.fieldLengthDistribution) {
    case 'constant':
      return new ConstantGenerator(p.fieldLength);
    case 'uniform':
      return new UniformGenerator(random, p.minFieldLength, p.fieldLength);
    case 'zipfian':
      return new ZipfianGenerator(random, p.minFieldLength, p.fieldLength);
    case 'histogram':
      if (histogram === undefined) throw new Error('fieldlengthdistribution=histogram without its histogram');
      return new HistogramGenerator(random, histogram);
  }
}

export class Workload {
  readonly #p: Parameters;
  readonly #random: Random;
  readonly #database: Database;
  readonly #measurements: Measurements;
  readonly #onError: (operation: string, error: unknown) => void;
  readonly #names: KeyNames;
  readonly #values: FieldValues;
  readonly #fields: Generator;
  readonly #operations: DiscreteGenerator<Operation>;
  readonly #keys: KeyChooser;
  readonly #loads: SharedCounter;
  readonly #inserts: SharedCounter;

  constructor(
    p: Parameters,
    shared: SharedState,
    random: Random,
    database: Database,
    measurements: Measurements,
    onError: (operation: string, error: unknown) => void,
    histogram?: LengthHistogram,
  ) {
    const fieldNames = Array.from({ length: p.fieldCount }, (_, i) => p.fieldNamePrefix + String(i));
    const longest = histogram === undefined ? p.fieldLength : histogram.blockSize * histogram.counts.length;
    this.#p = p;
    this.#random = random;
    this.#database = database;
    this.#measurements = measurements;
    this.#onError = onError;
    this.#names = new KeyNames(p.orderedInserts, p.zeroPadding, p.recordCount);
    this.#values = new FieldValues(random, lengthGenerator(p, random, histogram), fieldNames, p.dataIntegrity, longest);
    this.#fields = new UniformGenerator(random, 0, p.fieldCount - 1);
    this.#operations = new DiscreteGenerator<Operation>(random, [
      ['READ', p.proportions.READ],
      ['UPDATE', p.proportions.UPDATE],
      ['INSERT', p.proportions.INSERT],
      ['READMODIFYWRITE', p.proportions.READMODIFYWRITE],
    ]);
    this.#loads = new SharedCounter(shared.loads);
    this.#inserts = new SharedCounter(shared.inserts);
    this.#keys = new KeyChooser(p, random, this.#inserts, shared.sequence);
  }

  /** The next record of the load; false when its insert failed and the thread is to stop. */
  load(lane: number, intended: number): MaybePromise<boolean> {
    const key = this.#names.of(this.#loads.next());
    const status = this.#insert(key, this.#values.record(key), lane, intended);
    if (status === 'OK') return true;
    return this.#retried(status, key, lane);
  }

  /** One operation of the run. intended: when it should have begun, 0: now. */
  transaction(lane: number, intended: number): MaybePromise<unknown> {
    switch (this.#operations.next()) {
      case 'READ':
        return this.#read(this.#names.of(this.#keys.next()), lane, intended);
      case 'UPDATE':
        return this.#update(this.#names.of(this.#keys.next()), lane, intended);
      case 'INSERT':
        return this.#insertNew(lane, intended);
      case 'READMODIFYWRITE':
        return this.#readModifyWrite(this.#names.of(this.#keys.next()), lane, intended);
    }
  }

  #read(key: string, lane: number, intended: number): MaybePromise<Uint8Array | undefined> {
    const field = this.#p.readAllFields ? undefined : this.#fields.next();
    let record: Uint8Array | undefined;
    const ended = this.#measured('READ', intended, () => {
      const found = this.#database.read(key, lane);
      if (isPromise(found)) return found.then((bytes) => ((record = bytes) === undefined ? 'NOT_FOUND' : 'OK'));
      return (record = found) === undefined ? 'NOT_FOUND' : 'OK';
    });
    const verified = (): Uint8Array | undefined => {
      if (this.#p.dataIntegrity) this.#verify(key, record, field);
      return record;
    };
    return isPromise(ended) ? ended.then(verified) : verified();
  }

  #update(key: string, lane: number, intended: number): MaybePromise<Status> {
    if (this.#p.writeAllFields) {
      const record = this.#values.record(key);
      return this.#measured('UPDATE', intended, () => okAfter(this.#database.update(key, record, lane)));
    }
    const index = this.#fields.next();
    const value = this.#values.field(key, index);
    const write = (record: Uint8Array | undefined): MaybePromise<Status> =>
      this.#writeField(key, lane, record, index, value);
    return this.#measured('UPDATE', intended, () => {
      const record = this.#database.read(key, lane);
      return isPromise(record) ? record.then(write) : write(record);
    });
  }

  #writeField(
    key: string,
    lane: number,
    record: Uint8Array | undefined,
    index: number,
    value: Buffer,
  ): MaybePromise<Status> {
    if (record === undefined) return 'NOT_FOUND';
    const changed = replaceField(record, index, value);
    if (changed === undefined) return 'UNEXPECTED_STATE';
    return okAfter(this.#database.update(key, changed, lane));
  }

  #readModifyWrite(key: string, lane: number, intended: number): MaybePromise<unknown> {
    const whole = this.#p.writeAllFields ? this.#values.record(key) : undefined;
    const index = this.#fields.next();
    const value = this.#values.field(key, index);
    const start = nowNs();
    const write = (record: Uint8Array | undefined) =>
      this.#measured('UPDATE', intended, () =>
        whole === undefined
          ? this.#writeField(key, lane, record, index, value)
          : okAfter(this.#database.update(key, whole, lane)),
      );
    const total = () =>
      this.#measurements.operation('READ-MODIFY-WRITE', 'OK', intended === 0 ? start : intended, start, nowNs());
    const record = this.#read(key, lane, intended);
    if (isPromise(record)) return record.then(write).then(total);
    const written = write(record);
    if (isPromise(written)) return written.then(total);
    total();
    return undefined;
  }

  #insertNew(lane: number, intended: number): MaybePromise<unknown> {
    const number = this.#inserts.next();
    const key = this.#names.of(number);
    const status = this.#insert(key, this.#values.record(key), lane, intended);
    if (isPromise(status)) return status.then(() => this.#inserts.acknowledge(number));
    this.#inserts.acknowledge(number);
    return undefined;
  }

  #insert(key: string, record: Buffer, lane: number, intended: number): MaybePromise<Status> {
    return this.#measured('INSERT', intended, () => okAfter(this.#database.insert(key, record, lane)));
  }

  async #retried(first: MaybePromise<Status>, key: string, lane: number): Promise<boolean> {
    let status = await first;
    for (let retry = 0; status !== 'OK' && retry < this.#p.insertionRetryLimit; retry++) {
      await delay(1000 * this.#p.insertionRetryIntervalSeconds * (0.8 + 0.4 * this.#random.double()));
      status = await this.#insert(key, this.#values.record(key), lane, 0);
    }
    return status === 'OK' || this.#p.insertionKeepGoingOnError;
  }

  /** Runs one step of a database between two looks at the clock. What it throws is an ERROR. */
  #measured(name: string, intended: number, step: () => MaybePromise<Status>): MaybePromise<Status> {
    const start = nowNs();
    let status: MaybePromise<Status>;
    try {
      status = step();
    } catch (error) {
      return this.#ended(name, 'ERROR', intended, start, error);
    }
    if (isPromise(status)) {
      return status.then(
        (s) => this.#ended(name, s, intended, start),
        (error: unknown) => this.#ended(name, 'ERROR', intended, start, error),
      );
    }
    return this.#ended(name, status, intended, start);
  }

  #ended(name: string, status: Status, intended: number, start: number, error?: unknown): Status {
    const end = nowNs();
    this.#measurements.operation(name, status, intended === 0 ? start : intended, start, end);
    this.#measurements.status(name, status);
    if (error !== undefined) this.#onError(name, error);
    return status;
  }

  #verify(key: string, record: Uint8Array | undefined, field: number | undefined): void {
    const start = nowNs();
    const status: Status =
      record === undefined ? 'ERROR' : this.#values.verify(key, record, field) ? 'OK' : 'UNEXPECTED_STATE';
    this.#measurements.latency('VERIFY', nowNs() - start);
    this.#measurements.status('VERIFY', status);
  }
}

function okAfter(written: MaybePromise<void>): MaybePromise<Status> {
  return isPromise(written) ? written.then((): Status => 'OK') : 'OK';
}
