/** The commands of `farkv`, each loaded when it is used. */
import type { CliCommand } from './command.js';

/** Each exports a CliCommand of its own options; here their types do not matter. */
export const COMMANDS: Readonly<Record<string, () => Promise<{ readonly default: unknown }>>> = {
  server: () => import('./commands/server.js'),
  ready: () => import('./commands/ready.js'),
  status: () => import('./commands/status.js'),
  top: () => import('./commands/top.js'),
  member: () => import('./commands/member.js'),
  shard: () => import('./commands/shard.js'),
  replication: () => import('./commands/replication.js'),
  drain: () => import('./commands/drain.js'),
  get: () => import('./commands/get.js'),
  put: () => import('./commands/put.js'),
  increment: () => import('./commands/increment.js'),
  delete: () => import('./commands/delete.js'),
  scan: () => import('./commands/scan.js'),
  backup: () => import('./commands/backup.js'),
  restore: () => import('./commands/restore.js'),
  values: () => import('./commands/values.js'),
  export: () => import('./commands/export.js'),
  import: () => import('./commands/import.js'),
  gateway: () => import('./commands/gateway.js'),
  bench: () => import('./commands/bench.js'),
  secrets: () => import('./commands/secrets.js'),
  'join-token': () => import('./commands/join-token.js'),
  clients: () => import('./commands/clients.js'),
  revoke: () => import('./commands/revoke.js'),
  build: () => import('./commands/build.js'),
  completion: () => import('./commands/completion.js'),
  doctor: async () => ({ default: (await import('./commands/doctor.js')).doctorCommand }),
};

/** The one with this name; undefined: there is none. */
export function commandNamed(name: string): (() => Promise<CliCommand<object>>) | undefined {
  const load = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  return load === undefined ? undefined : async () => (await load()).default as CliCommand<object>;
}

export async function allCommands(): Promise<CliCommand<object>[]> {
  return await Promise.all(Object.values(COMMANDS).map(async (load) => (await load()).default as CliCommand<object>));
}
