/** What happened in a simulated history, by kind. */
const NAMES = [
  'messages',
  'dropped',
  'duplicated',
  'longDelays',
  'cutOff',
  'writes',
  'slowWrites',
  'crashes',
  'crashesInside',
  'machineCrashes',
  'failedSyncs',
  'repairs',
  'disksRefused',
  'diskFull',
  'pauses',
  'clockJumps',
  'partitions',
  'oneWayCuts',
  'snapshotsTaken',
  'compactions',
  'proposals',
  'reads',
  'configChanges',
  'transfers',
  'hints',
] as const;

export type Counters = Record<(typeof NAMES)[number], number>;

export function newCounters(): Counters {
  return Object.fromEntries(NAMES.map((name) => [name, 0])) as Counters;
}
