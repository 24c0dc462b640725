/**
 * LMDB by the lmdb package, in this process: getBinaryFast, which gives a view of the memory map's copy without
 * allocating, and put, which is acknowledged when its transaction is committed. Properties: lmdb.path (a directory; by
 * default one under the system's temporary directory, which stays between load and run), lmdb.sync=false (true: every
 * commit waits for the disk).
 */
import { join } from 'node:path';
import type { RootDatabase } from 'lmdb';
import { privateTemporaryDirectory } from '../../../net/private-directory.js';
import type { Properties } from '../properties.js';
import type { Database, Facts } from './database.js';
import { choiceSetting, databaseSettings, optionalPackage } from './settings.js';

export class LmdbDatabase implements Database {
  readonly name = 'lmdb';
  readonly #settings;
  readonly #sync: boolean;
  #store: RootDatabase<Buffer, string> | undefined;

  constructor(properties: Properties) {
    this.#settings = databaseSettings(properties, 'lmdb.', {
      'lmdb.path': join(privateTemporaryDirectory(), 'bench-lmdb'),
      'lmdb.sync': 'false',
    });
    this.#sync = choiceSetting(this.#settings, 'lmdb.sync', ['true', 'false']) === 'true';
  }

  async init(): Promise<void> {
    const { open } = await optionalPackage('lmdb', () => import('lmdb'));
    this.#store = open<Buffer, string>({
      path: this.#settings['lmdb.path'],
      encoding: 'binary',
      noSync: !this.#sync,
      compression: false,
    });
  }

  read(key: string): Uint8Array | undefined {
    // The buffer is lmdb's own and longer than the record; its `length` is set to the record's.
    return this.#opened.getBinaryFast(key);
  }

  async insert(key: string, record: Buffer): Promise<void> {
    await this.#opened.put(key, record);
  }

  async update(key: string, record: Buffer): Promise<void> {
    await this.#opened.put(key, record);
  }

  facts(): Facts {
    return { texts: { Client: 'lmdb', Path: this.#settings['lmdb.path'], Sync: String(this.#sync) }, counts: {} };
  }

  async cleanup(): Promise<void> {
    await this.#opened.close();
  }

  get #opened(): RootDatabase<Buffer, string> {
    if (this.#store === undefined) throw new Error('not open');
    return this.#store;
  }
}
