/**
 * server/raft-storage: the durable side of a Raft member (raft-storage.ts). For the driver:
 *
 *   const disk = new FileDisk(join(dataDir, 'raft'), addon);
 *   const { storage, restored, created } = RaftStorage.open({
 *     disk, identity: { clusterId, memberId: raftId }, bootstrap: the first voters, or undefined to join, checksum:
 *     addon.crc32c, rebuild: 'farkv member remove s3, move the directory away, farkv server --join HOST:PORT', notice,
 *     fatal: endProcess });
 *   const node = new RaftNode({ id, incarnation, random }, restored);
 *   storage.persist(ready) -> 'done' | 'full'          in step 1 of the loop in core/raft/index.ts
 *   storage.saveSnapshot(snapshot) -> 'done' | 'full'  before node.compact(snapshot, keepEntries); on 'full' do not
 *                                                      compact
 *   storage.close()
 * All of it is synchronous (disk.ts says why) and belongs in the worker thread.
 */
export type { Disk, DiskFile } from './disk.js';
export { endProcess, type Fatal } from './fatal.js';
export { FileDisk } from './file-disk.js';
export { RaftStorage, type OpenedStorage, type Persisted, type StorageOptions } from './raft-storage.js';
