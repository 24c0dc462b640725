/**
 * farkv/server: a server inside a Node.js program.
 *
 *     import { startServer } from 'farkv/server';
 *     await using server = await startServer({ memory: '512mb', dataDir: '/var/lib/farkv' });
 *     console.log(server.addresses);
 *
 * The server runs in its own threads; a busy event loop here does not slow it down.
 */
import { packageRoot } from '../native/runtime.js';

export { startServer, type ServerHandle, type StartControl } from './start.js';
export type { ServerOptions, TenantOptions } from './config/server-options.js';
export { FarkvError, type ErrorCode } from '../core/errors.js';
export type { FabricAddress, Provider } from '../core/metadata/state.js';
export type { LogLevel } from './config/settings.js';
export type { ClusterStatus, MemberStatus, NodeStatus, ShardStatus } from './status.js';

// The addon is loaded by the server's threads: where it cannot be, a program is told at once.
packageRoot(import.meta.url);
