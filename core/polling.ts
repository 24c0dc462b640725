/** Whether a thread that finds no work looks again, for as long as that helps, before it sleeps (docs/dataplane.md). */
export const POLLING = ['auto', 'always', 'never'] as const;
export type Polling = (typeof POLLING)[number];

export const isPolling = (value: unknown): value is Polling => POLLING.some((one) => one === value);
