/**
 * What a run is told: YCSB's properties, under YCSB's names and with its defaults, read into one typed object and
 * checked.
 *
 * Properties of the databases (`redis.host`, ...) are left to them. A property that is like a known one is an error that
 * names it: a misspelt `recordcnt` would otherwise measure something else. Others nobody here knows are of databases that
 * YCSB has and this runner has not (`mongodb.url`): they are named, and ignored.
 */
import { FarkvError } from '../../core/errors.js';
import { nearest, unknownName } from '../../core/nearest.js';
import type { Properties } from './properties.js';

export type RequestDistribution =
  'uniform' | 'zipfian' | 'zipfian-exact' | 'latest' | 'hotspot' | 'exponential' | 'sequential';
export type LengthDistribution = 'constant' | 'uniform' | 'zipfian' | 'histogram';
export type MeasurementInterval = 'op' | 'intended' | 'both';

export interface Parameters {
  readonly recordCount: number;
  readonly operationCount: number;
  readonly insertStart: number;
  readonly insertCount: number;
  readonly fieldCount: number;
  readonly fieldLength: number;
  readonly minFieldLength: number;
  readonly fieldLengthDistribution: LengthDistribution;
  readonly fieldLengthHistogram: string;
  readonly fieldNamePrefix: string;
  readonly readAllFields: boolean;
  readonly writeAllFields: boolean;
  readonly dataIntegrity: boolean;
  readonly proportions: Readonly<Record<'READ' | 'UPDATE' | 'INSERT' | 'SCAN' | 'READMODIFYWRITE', number>>;
  readonly requestDistribution: RequestDistribution;
  readonly hotspotDataFraction: number;
  readonly hotspotOperationFraction: number;
  readonly exponentialPercentile: number;
  readonly exponentialFraction: number;
  readonly orderedInserts: boolean;
  readonly zeroPadding: number;
  readonly insertionRetryLimit: number;
  readonly insertionRetryIntervalSeconds: number;
  readonly insertionKeepGoingOnError: boolean;
  readonly threads: number;
  /** Operations a second over all threads; 0: as many as go. */
  readonly target: number;
  /** Seconds; 0: no limit. */
  readonly maxExecutionTime: number;
  readonly measurementInterval: MeasurementInterval;
  readonly percentiles: readonly number[];
  readonly statusIntervalSeconds: number;
  /** Operations that one thread has in flight; YCSB has one. */
  readonly outstanding: number;
  readonly seed: number;
}

/** What a run counts to. */
export const LIMIT = 2 ** 31 - 1;
/** Half of what fnvModulo takes, which leaves room for inserts. */
const RECORDS_MAX = 2 ** 36;

/** Known to YCSB and harmless to accept: they concern what this runner has not (scans, the JVM, other exporters). */
const ACCEPTED = new Set([
  'workload',
  'table',
  'db',
  'dotransactions',
  'readallfieldsbyname',
  'minscanlength',
  'maxscanlength',
  'scanlengthdistribution',
  'measurement.trackjvm',
  'exportfile',
  'reportlatencyforeacherror',
  'latencytrackederrors',
  'status',
  'label',
  'spin.sleep',
]);

class Reader {
  readonly known = new Set<string>();
  readonly #properties: Properties;

  constructor(properties: Properties) {
    this.#properties = properties;
  }

  text(name: string, byDefault: string): string {
    this.known.add(name);
    return this.#properties.get(name)?.trim() ?? byDefault;
  }

  number(name: string, byDefault: number, low: number, high: number): number {
    const text = this.text(name, String(byDefault));
    const value = text === '' ? Number.NaN : Number(text);
    if (!(value >= low && value <= high)) throw this.#bad(name, text, `a number from ${low} to ${high}`);
    return value;
  }

  integer(name: string, byDefault: number, low: number, high: number): number {
    const value = this.number(name, byDefault, low, high);
    if (!Number.isInteger(value)) throw this.#bad(name, String(value), 'an integer');
    return value;
  }

  /** As Java's Boolean.parseBoolean, but that what is neither is refused. */
  flag(name: string, byDefault: boolean): boolean {
    const text = this.text(name, String(byDefault)).toLowerCase();
    if (text !== 'true' && text !== 'false') throw this.#bad(name, text, 'true or false');
    return text === 'true';
  }

  choice<const T extends string>(name: string, choices: readonly T[], byDefault: T): T {
    const text = this.text(name, byDefault);
    const found = choices.find((choice) => choice === text);
    if (found === undefined) throw this.#bad(name, text, `one of ${choices.join(', ')}`);
    return found;
  }

  #bad(name: string, text: string, wanted: string): FarkvError {
    return new FarkvError('ERR_CONFIG', `property ${name}=${text}: ${wanted} is expected`);
  }
}

/** Those that nobody knows. Throws for one that is like a known one. */
function strangeNames(properties: Properties, known: readonly string[], databasePrefixes: readonly string[]): string[] {
  return [...properties.keys()].filter((name) => {
    if (known.includes(name) || databasePrefixes.some((prefix) => name.startsWith(prefix))) return false;
    if (nearest(name, known) === undefined) return true;
    throw new FarkvError('ERR_CONFIG', unknownName('property', name, known));
  });
}

/**
 * databasePrefixes: names that begin so belong to the databases and are not read here. `onStrange` is told of the names
 * that nobody here knows, if there are any: files for YCSB have those of other databases.
 */
export function parseParameters(
  properties: Properties,
  databasePrefixes: readonly string[] = [],
  onStrange: (names: readonly string[]) => void = () => undefined,
): Parameters {
  const read = new Reader(properties);
  const recordCount = read.integer('recordcount', 0, 0, RECORDS_MAX);
  const insertStart = read.integer('insertstart', 0, 0, RECORDS_MAX);
  const percentiles = read.text('hdrhistogram.percentiles', '50,95,99').split(',').map(Number);
  if (!percentiles.every((p) => p >= 0 && p <= 100)) {
    throw new FarkvError(
      'ERR_CONFIG',
      'property hdrhistogram.percentiles: numbers from 0 to 100, separated by commas, are expected',
    );
  }
  const parameters: Parameters = {
    recordCount,
    operationCount: read.integer('operationcount', 0, 0, Number.MAX_SAFE_INTEGER),
    insertStart,
    insertCount: read.integer('insertcount', Math.max(0, recordCount - insertStart), 0, RECORDS_MAX),
    fieldCount: read.integer('fieldcount', 10, 1, 10_000),
    fieldLength: read.integer('fieldlength', 100, 1, 64 << 20),
    minFieldLength: read.integer('minfieldlength', 1, 1, 64 << 20),
    fieldLengthDistribution: read.choice(
      'fieldlengthdistribution',
      ['constant', 'uniform', 'zipfian', 'histogram'],
      'constant',
    ),
    fieldLengthHistogram: read.text('fieldlengthhistogram', 'hist.txt'),
    fieldNamePrefix: read.text('fieldnameprefix', 'field'),
    readAllFields: read.flag('readallfields', true),
    writeAllFields: read.flag('writeallfields', false),
    dataIntegrity: read.flag('dataintegrity', false),
    proportions: {
      READ: read.number('readproportion', 0.95, 0, 1e9),
      UPDATE: read.number('updateproportion', 0.05, 0, 1e9),
      INSERT: read.number('insertproportion', 0, 0, 1e9),
      SCAN: read.number('scanproportion', 0, 0, 1e9),
      READMODIFYWRITE: read.number('readmodifywriteproportion', 0, 0, 1e9),
    },
    requestDistribution: read.choice(
      'requestdistribution',
      ['uniform', 'zipfian', 'zipfian-exact', 'latest', 'hotspot', 'exponential', 'sequential'],
      'uniform',
    ),
    hotspotDataFraction: read.number('hotspotdatafraction', 0.2, 0, 1),
    hotspotOperationFraction: read.number('hotspotopnfraction', 0.8, 0, 1),
    exponentialPercentile: read.number('exponential.percentile', 95, 0.001, 99.999999),
    exponentialFraction: read.number('exponential.frac', 0.8571428571, 1e-9, 1e9),
    // YCSB takes everything that is not "hashed" for ordered.
    orderedInserts: read.choice('insertorder', ['hashed', 'ordered'], 'hashed') === 'ordered',
    zeroPadding: read.integer('zeropadding', 1, 0, 1000),
    insertionRetryLimit: read.integer('core_workload_insertion_retry_limit', 0, 0, LIMIT),
    insertionRetryIntervalSeconds: read.number('core_workload_insertion_retry_interval', 3, 0, 86_400),
    insertionKeepGoingOnError: read.flag('core_workload_insertion_keep_going_on_error', false),
    threads: read.integer('threadcount', 1, 1, 1024),
    target: read.number('target', 0, 0, 1e12),
    maxExecutionTime: read.number('maxexecutiontime', 0, 0, 31_536_000),
    measurementInterval: read.choice('measurement.interval', ['op', 'intended', 'both'], 'op'),
    percentiles,
    statusIntervalSeconds: read.number('status.interval', 10, 0.1, 86_400),
    outstanding: read.integer('outstanding', 1, 1, 65_536),
    seed: read.integer('seed', (Date.now() ^ (process.pid << 16)) & 0x7fffffff, 0, LIMIT),
  };
  // The one kind of measurement there is; another one asked for must not go by in silence.
  read.choice('measurementtype', ['hdrhistogram'], 'hdrhistogram');
  const strange = strangeNames(properties, [...read.known, ...ACCEPTED], databasePrefixes);
  if (strange.length > 0) onStrange(strange);
  checkTogether(parameters);
  return parameters;
}

function checkTogether(p: Parameters): void {
  const bad = (text: string) => new FarkvError('ERR_CONFIG', text);
  if (p.recordCount < p.insertStart + p.insertCount) {
    throw bad(
      `recordcount=${p.recordCount} must be at least insertstart + insertcount = ${p.insertStart + p.insertCount}`,
    );
  }
  if (p.requestDistribution === 'sequential' && p.insertCount > LIMIT)
    throw bad(`requestdistribution=sequential goes over at most ${LIMIT} records, and insertcount=${p.insertCount}`);
  if (p.minFieldLength > p.fieldLength)
    throw bad(`minfieldlength=${p.minFieldLength} is above fieldlength=${p.fieldLength}`);
  if (p.dataIntegrity && p.fieldLengthDistribution !== 'constant') {
    throw bad('dataintegrity=true needs fieldlengthdistribution=constant');
  }
  if (Object.values(p.proportions).every((weight) => weight === 0))
    throw bad('every proportion is 0: there is nothing to do');
}
