/** What operators are told of shards on their way, of what is in the way, and of owners that were replaced. */
import type { Failover } from '../core/metadata/failovers.js';
import { formatSize } from '../core/size.js';
import type { MoveError } from './shards/move-errors.js';
import { isNearlyFull, memoryOf, type ClusterStatus } from './status.js';

/** The same for as long as it is the same error. */
export function errorLine({ shard, from, to, attempts, reason, calledOff }: MoveError): string {
  if (calledOff)
    return `move of shard ${shard} (${from} -> ${to}) cancelled${attempts > 1 ? ` after ${attempts} attempts` : ''}; ${from} keeps serving it: ${reason}`;
  return `shard ${shard} could not be copied yet (${from} -> ${to}, ${attempts === 1 ? '1 attempt' : `${attempts} attempts`}); it will be retried: ${reason}`;
}

/** Of the shards of one server, or of all: what is in the way. */
export function errorLines({ moveErrors }: ClusterStatus, from?: string): string[] {
  return moveErrors.filter((error) => from === undefined || error.from === from).map(errorLine);
}

/**
 * Of moves that spread shards, those that leave no server nearly full, all together; and why the others would, or why
 * nobody knows. Where a copy is already, or a part of it, it takes the rest alone.
 */
export function withRoom<M extends { readonly shard: number; readonly to: string }>(
  { members, shards }: Pick<ClusterStatus, 'members' | 'shards'>,
  moves: readonly M[],
): { readonly fits: M[]; readonly lacks: { readonly move: M; readonly why: string }[] } {
  const servers = new Map(
    members.map(({ id, memoryBytes, node }) => {
      const has = new Map(node?.dataPlane?.shards.map((table) => [table.shard, table.usedBytes]));
      return [id, { memoryBytes, has, isKnown: node !== undefined, usedBytes: memoryOf(node).usedBytes }];
    }),
  );
  const fits: M[] = [];
  const lacks: { move: M; why: string }[] = [];
  for (const move of moves) {
    const { shard, to } = move;
    const server = servers.get(to);
    const needs = Math.max(0, (shards[shard]?.memory?.live ?? 0) - (server?.has.get(shard) ?? 0));
    const lack = (why: string): unknown => lacks.push({ move, why: `shard ${shard} is not moved to ${to}, ${why}` });
    if (server?.isKnown === false) {
      lack('whose memory is not known now, for it did not answer: try again');
      continue;
    }
    if (server !== undefined && (needs > 0 || !server.has.has(shard))) {
      const { usedBytes, memoryBytes } = server;
      if (isNearlyFull(usedBytes + needs, memoryBytes)) {
        lack(
          `which would be nearly full: its values take ${formatSize(needs)}, and ${to} uses ${formatSize(usedBytes)} of its --memory of ${formatSize(memoryBytes)}, with what is moved there before; add a server (farkv server --join), or start ${to} again with more --memory`,
        );
        continue;
      }
      server.usedBytes += needs;
    }
    fits.push(move);
  }
  return { fits, lacks };
}

export function moveLines({ moves, shards }: ClusterStatus): string[] {
  return moves.map(
    ({ shard, to }) =>
      `shard ${shard} is moving (${shards.find((s) => s.shard === shard)?.owner ?? 'no owner'} -> ${to}): handed over once its copy is in sync`,
  );
}

/** Owners that fell silent together are replaced within this time: by copies at once, or when their leases are over. */
const TOGETHER_MS = 5000;

/** As long as the alert FarkvFailovers counts (docs/dashboards/alerts.yml). */
const LATELY_MS = 600_000;

/**
 * The newest, why it was, and those shortly before it; of an owner whose shards went to several servers, a line each.
 * Then how many more there were lately.
 */
export function failoverLines({ failovers }: Pick<ClusterStatus, 'failovers'>): string[] {
  const newestMs = failovers[0]?.agoMs ?? 0;
  const last = failovers.filter(({ agoMs }) => agoMs - newestMs < TOGETHER_MS);
  const more = failovers.filter(({ agoMs }) => agoMs < LATELY_MS && agoMs - newestMs >= TOGETHER_MS).length;
  return [
    ...last.map((one) => `last failover: ${whatText(one)} ${Math.round(one.agoMs / 1000)} s ago, ${whyText(one)}`),
    ...(more === 0 ? [] : [`and ${more} more in the last ten minutes: farkv status --json has them (failovers)`]),
  ];
}

/** Beside the time when it was; `shards`: which they are. */
export function failoverText(one: Omit<Failover, 'shards'>, shards: string): string {
  return `failover: ${shards} from ${one.from} to ${one.to}, ${whyText(one)}`;
}

function whatText({ from, to, shards }: Failover): string {
  return `${shards === 1 ? '1 shard' : `${shards} shards`} from ${from} to ${to}`;
}

function whyText({ from, to, why, values }: Omit<Failover, 'shards'>): string {
  return `since ${from} ${why === 'silent' ? 'did not answer' : 'had started again'}: ${servedText(to, values)}`;
}

function servedText(to: string, values: Failover['values']): string {
  if (values === 'all') return 'with all values, from a copy';
  return values === 'some' ? `with what the copy at ${to} had` : `empty, since ${to} had no copy`;
}
