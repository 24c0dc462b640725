/**
 * The databases that can be measured. Apart from open.ts, so that a command line can be read without loading any of
 * them.
 */
export const DATABASES = ['farkv', 'redis', 'memcached', 'lmdb', 'basic'] as const;
export type DatabaseName = (typeof DATABASES)[number];
