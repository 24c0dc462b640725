/** What an operator does about a server whose metadata log must not be used any more, as its error says. */
import type { ServerSettings } from './config/settings.js';
import { isOpen } from './control/auth.js';
import type { DataDirectory } from './data-directory.js';

/** From an empty directory and the others' logs, where there are others, or from a copy that has forgotten nothing. */
export function howToRebuild(
  { id, peers, join, access }: Pick<ServerSettings, 'id' | 'peers' | 'join' | 'access'>,
  { joined, servers }: Pick<DataDirectory, 'joined' | 'servers'>,
): string {
  const copy = 'put back a copy of its directory made since it last ran';
  const isAlone = servers === undefined ? !joined && join.length === 0 && peers.length === 1 : servers.length === 1;
  if (isAlone) return `No other server has its log: ${copy}, or restore a farkv backup into a new cluster`;
  const shown = isOpen(access) ? '' : ', and --join-token-file with a new token of farkv join-token create';
  return `Rebuild the member from the others: farkv member remove ${id}, then start it with an empty data directory, with --join instead of --peers${shown}; or ${copy}`;
}
