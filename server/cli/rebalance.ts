/**
 * Shards are moved, and spread over the servers, for `farkv shard`. Moves that somebody else has begun are joined or
 * waited for.
 */
import { FarkvError } from '../../core/errors.js';
import type { PlannedMove } from '../../core/metadata/plan.js';
import { formatSize } from '../../core/size.js';
import type { MoveError } from '../shards/move-errors.js';
import type { ClusterStatus } from '../status.js';
import type { ClusterConnection } from './cluster.js';
import { errorLine, errorLines, moveLines, withRoom } from '../move-lines.js';
import { table } from './table.js';

export type Cluster = Pick<ClusterConnection, 'call' | 'status' | 'until'>;

/** What is to be moved, and the cluster as it was then. */
export interface Look {
  readonly plan: readonly PlannedMove[];
  readonly status: ClusterStatus;
}

const ownerOf = ({ shards }: ClusterStatus, shard: number): string | undefined =>
  shards.find((s) => s.shard === shard)?.owner;
/** Changes with every change of owner. */
const epochOf = ({ shards }: ClusterStatus, shard: number): number | undefined =>
  shards.find((s) => s.shard === shard)?.epoch;
const serves = (status: ClusterStatus, shard: number, to: string): boolean =>
  status.shards.some((s) => s.shard === shard && s.owner === to && s.state === 'serving');
const onItsWay = ({ moves }: ClusterStatus, shard: number, to: string): boolean =>
  moves.some((m) => m.shard === shard && m.to === to);
const isBusy = (error: unknown): error is FarkvError => error instanceof FarkvError && error.code === 'ERR_BUSY';

/** Moves of one rebalance at a time: a copy is made for each, of which a server makes few at once (JOINS_AT_ONCE). */
const MOVES_AT_ONCE = 4;

interface Wanted extends Pick<PlannedMove, 'shard' | 'to'> {
  /** Of the shard as it was seen: if it has changed owners since, it is not moved. */
  readonly epoch?: number | undefined;
}

/**
 * ERR_BUSY when the move was called off, as where no copy can be made at that server. A move of the shard to the same server
 * that is under way is joined.
 */
export async function moveOne(cluster: Cluster, { shard, to, epoch }: Wanted, waitMs: number): Promise<void> {
  const begunMs = performance.now();
  try {
    await cluster.call('shard-move', { shard, to, ...(epoch === undefined ? {} : { epoch }) });
  } catch (error) {
    const now = isBusy(error) ? await cluster.status() : undefined;
    if (now === undefined || !(onItsWay(now, shard, to) || ownerOf(now, shard) === to)) throw error;
  }
  const isOurs = ({ agoMs }: MoveError): boolean => agoMs <= performance.now() - begunMs;
  const moveErrors = ({ moveErrors }: ClusterStatus): readonly MoveError[] =>
    moveErrors.filter((one) => one.shard === shard && one.to === to && isOurs(one));
  const inTheWay = (status: ClusterStatus): string[] =>
    moveErrors(status)
      .filter((one) => !one.calledOff)
      .map(errorLine);
  const over = (now: ClusterStatus): boolean =>
    serves(now, shard, to) || (!onItsWay(now, shard, to) && ownerOf(now, shard) !== to);
  const now = await cluster.until(over, waitMs, `the move of shard ${shard} to ${to}`, inTheWay);
  const owner = ownerOf(now, shard);
  if (owner === to) return;
  // What was in the way may have been asked for before the move was seen to be called off.
  const why = moveErrors(await cluster.status()).find((one) => one.calledOff);
  throw new FarkvError(
    'ERR_BUSY',
    `the move of shard ${shard} to ${to} was cancelled: ${owner ?? 'no server'} owns it. ${why === undefined ? `The logs of ${to} and of the leader, ${now.leader ?? 'whoever that is'}, say more` : errorLine(why)}`,
  );
}

export async function lookAt(cluster: Cluster): Promise<Look> {
  const status = await cluster.status();
  return { status, plan: (await cluster.call('shard-plan', {})) as readonly PlannedMove[] };
}

const MORE =
  'then copies are spread too, as far as they are not: shards move for them, and others back, which copies nothing\n';

export function planText(plan: readonly PlannedMove[], status: ClusterStatus): string {
  const { fits, lacks } = withRoom(status, plan);
  const under = [...moveLines(status), ...lacks.map(({ why }) => why)].map((line) => `${line}\n`).join('');
  if (fits.length > 0)
    return (
      under +
      table(
        [{ title: 'SHARD', right: true }, { title: 'FROM' }, { title: 'TO' }, { title: 'COPY GIVEN UP BY' }],
        fits.map((m) => [String(m.shard), m.from, m.to, m.gives ?? '-']),
      ) +
      (status.replication.some(({ replicas }) => replicas > 1) && fits.every((m) => m.gives === undefined) ? MORE : '')
    );
  if (plan.length > 0) return under;
  return under === ''
    ? `the shards are balanced: nothing to move\n${withoutShards(status)}`
    : `${under}the shards will be balanced when these moves are done\n`;
}

/** Servers that own nothing, though they could: a part is rounded, so a small one may be none. */
function withoutShards({ members, shards }: ClusterStatus): string {
  const keepers = members.filter((m) => m.memoryBytes > 0 && !m.draining && m.state === 'up');
  const all = keepers.reduce((sum, { memoryBytes }) => sum + memoryBytes, 0);
  return keepers
    .filter(({ id, memoryBytes }) => shards.length * memoryBytes < all && shards.every(({ owner }) => owner !== id))
    .map(
      ({ id, memoryBytes }) =>
        `${id} owns no shard: by its --memory, ${formatSize(memoryBytes)} of ${formatSize(all)} of all servers, its part of ${shards.length} shards is less than one\n`,
    )
    .join('');
}

/** Nothing moves, and what moved has given the copy up that is one too many: the next plan counts copies. */
function isSettled({ moves, shards, members }: ClusterStatus): boolean {
  const draining = new Set(members.filter((m) => m.draining).map(({ id }) => id));
  const isSurplus = ({ copies }: ClusterStatus['shards'][number]): boolean =>
    copies !== undefined && copies.inSync > copies.wanted && copies.copies.every(({ member }) => !draining.has(member));
  return moves.length === 0 && !shards.some(isSurplus);
}

/**
 * Makes the planned moves, waits for all others that are under way, and looks again, until nothing is left to do.
 * Returns how many shards were moved. ERR_BUSY with what is in the way when the shards are not balanced then: a move
 * that was called off, or for which there is no room, is not tried twice.
 */
export async function spread(cluster: Cluster, first: Look, waitMs: number): Promise<number> {
  const failed = new Map<string, string>();
  // Made so that copies go elsewhere, each once: it has an end whatever others do meanwhile.
  const forCopies = new Set<string>();
  const nameOf = ({ shard, to }: PlannedMove): string => `${shard} ${to}`;
  let moved = 0;
  for (let { plan, status } = first; ; { plan, status } = await lookAt(cluster)) {
    const waiting = plan.filter(
      (move) => !failed.has(nameOf(move)) && (move.gives === undefined || !forCopies.has(nameOf(move))),
    );
    for (const move of waiting) if (move.gives !== undefined) forCopies.add(nameOf(move));
    if (waiting.length === 0 && status.moves.length === 0) {
      const reasons = plan.map(
        (move) =>
          failed.get(nameOf(move)) ?? `the copy of shard ${move.shard} at ${move.gives ?? ''} did not go to ${move.to}`,
      );
      if (reasons.length > 0) throw new FarkvError('ERR_BUSY', `the shards are not balanced: ${reasons.join('; ')}`);
      return moved;
    }
    const before = status;
    const making = new Set<PlannedMove>();
    const make = async (move: PlannedMove): Promise<void> => {
      making.add(move);
      try {
        const now = await cluster.status();
        // Clients write meanwhile, and others move shards; what is being made here may not be seen yet.
        const others = now.moves.filter(({ shard }) => [...making].every((one) => one.shard !== shard));
        const lack = withRoom(now, [...others, ...making]).lacks.find((one) => one.move === move);
        if (lack !== undefined) {
          failed.set(nameOf(move), lack.why);
          return;
        }
        await moveOne(cluster, { ...move, epoch: epochOf(before, move.shard) }, waitMs);
        moved++;
      } catch (error) {
        // One that is called off says nothing of the others. A shard that somebody else has moved meanwhile is planned
        // anew.
        if (!isBusy(error)) throw error;
        if (epochOf(await cluster.status(), move.shard) === epochOf(before, move.shard))
          failed.set(nameOf(move), error.message);
      } finally {
        making.delete(move);
      }
    };
    const lane = async (): Promise<void> => {
      for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) await make(next);
    };
    await Promise.all(Array.from({ length: MOVES_AT_ONCE }, lane));
    await cluster.until(isSettled, waitMs, 'the end of all moves, and of copies that are one too many,', errorLines);
  }
}
