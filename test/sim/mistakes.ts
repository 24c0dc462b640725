/** Mechanisms of leases that the simulator can leave out, so that its checks are seen to find it (owners.ts). */

export const MISTAKES = [
  'new leaders do not wait',
  'grants go on while shards are taken',
  'leases count from the answer',
  'owners do not read the log first',
  'any leader is believed',
  'leaders call owners dead by the clock alone',
  'leaders count the time in which they stood still',
] as const;
export type Mistake = (typeof MISTAKES)[number];
/** The others break what clients rely on, and are to be found by that. */
export const UNFAIR: readonly Mistake[] = [
  'leaders call owners dead by the clock alone',
  'leaders count the time in which they stood still',
];
