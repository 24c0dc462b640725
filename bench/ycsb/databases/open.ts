/** The databases by name. */
import { FarkvError } from '../../../core/errors.js';
import { DATABASES } from '../database-names.js';
import { recordBytes, writeDirectory } from '../record.js';
import { BasicDatabase } from './basic.js';
import type { Database, DatabaseOptions } from './database.js';
import { FarkvDatabase } from './farkv.js';
import { LmdbDatabase } from './lmdb.js';
import { MemcachedDatabase } from './memcached.js';
import { RedisDatabase } from './redis.js';

/** Properties that begin so belong to the databases. */
export const DATABASE_PREFIXES = ['farkv.', 'redis.', 'memcached.', 'lmdb.', 'basicdb.'] as const;

export function openDatabase(name: string, options: DatabaseOptions): Database {
  switch (name) {
    case 'farkv':
      return new FarkvDatabase(options);
    case 'redis':
      return new RedisDatabase(options.properties);
    case 'memcached':
      return new MemcachedDatabase(options.properties);
    case 'lmdb':
      return new LmdbDatabase(options.properties);
    case 'basic':
      return new BasicDatabase(blankRecord(options.parameters.fieldCount, options.parameters.fieldLength));
    default:
      throw new FarkvError('ERR_CONFIG', `unknown database ${name}; one of ${DATABASES.join(', ')} is expected`);
  }
}

function blankRecord(fields: number, length: number): Buffer {
  const lengths = new Uint32Array(fields).fill(length);
  const record = Buffer.alloc(recordBytes(lengths));
  writeDirectory(record, lengths);
  return record;
}
