/**
 * A process, or with argument `worker` a worker thread of one, whose disk fails a sync: storage.test.ts looks how it
 * ends. Were it to go on, it would say so and exit with 0.
 */
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Worker, isMainThread } from 'node:worker_threads';
import { endProcess, FileDisk, RaftStorage, type DiskFile } from '../../server/raft-storage/index.js';
import { crc32c } from '../support/crc32c.js';

class FailingDisk extends FileDisk {
  failing = false;

  override create(name: string): DiskFile {
    const file = super.create(name);
    const datasync = () => {
      if (this.failing)
        throw Object.assign(new Error('EIO: i/o error, fdatasync'), { code: 'EIO', syscall: 'fdatasync' });
      file.datasync();
    };
    return {
      get size() {
        return file.size;
      },
      write: (bytes, position) => file.write(bytes, position),
      datasync,
      truncate: (size) => file.truncate(size),
      close: () => file.close(),
    };
  }
}

function fail(): void {
  const disk = new FailingDisk(mkdtempSync(join(tmpdir(), 'farkv-sync-')), {
    tryLock: () => true,
    dropCleanPages: () => undefined,
  });
  const { storage } = RaftStorage.open({
    disk,
    identity: { clusterId: 'c', memberId: 1 },
    bootstrap: [1],
    checksum: crc32c,
    rebuild: 'rebuild',
    notice: () => undefined,
    fatal: endProcess,
  });
  disk.failing = true;
  storage.persist({
    hardState: undefined,
    snapshot: undefined,
    entries: [{ index: 2, term: 1, type: 0, data: new Uint8Array(8) }],
  });
  console.log('went on');
}

if (isMainThread && process.argv[2] === 'worker')
  new Worker(import.meta.filename).on('exit', () => console.log('the worker ended alone'));
else fail();
