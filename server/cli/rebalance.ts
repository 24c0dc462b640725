/**
 * Shards are moved, and spread over the servers, for `farkv shard`. Moves that somebody else has begun are joined or
 * waited for.
 */
import { FarkvError } from '../../core/errors.js';
import { MOVES_AT_ONCE } from '../../core/metadata/leader-policy.js';
import type { PlannedMove } from '../../core/metadata/plan.js';
import type { MoveError } from '../shards/move-errors.js';
import type { ClusterStatus } from '../status.js';
import type { ClusterConnection } from './cluster.js';
import { errorLine, errorLines, lackOfRoom, moveLines, roomLines } from '../move-lines.js';
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

/**
 * ERR_BUSY when the move was called off. A move of the shard to the same server that is under way is joined.
 * `needsRoom`: it is called off here where that server turns out to lack memory for a copy.
 */
export async function moveOne(
  cluster: Cluster,
  { shard, to, needsRoom }: Pick<PlannedMove, 'shard' | 'to'> & { readonly needsRoom?: boolean },
  waitMs: number,
): Promise<void> {
  try {
    await cluster.call('shard-move', { shard, to });
  } catch (error) {
    const now = isBusy(error) ? await cluster.status() : undefined;
    if (now === undefined || !(onItsWay(now, shard, to) || ownerOf(now, shard) === to)) throw error;
  }
  const moveErrors = ({ moveErrors }: ClusterStatus): readonly MoveError[] =>
    moveErrors.filter((one) => one.shard === shard && one.to === to);
  const lacking = (status: ClusterStatus): string[] => roomLines(status, (one) => one.shard === shard && one.to === to);
  const inTheWay = (status: ClusterStatus): string[] => [
    ...moveErrors(status)
      .filter((one) => !one.calledOff)
      .map(errorLine),
    ...lacking(status),
  ];
  const over = (now: ClusterStatus): boolean =>
    serves(now, shard, to) ||
    (!onItsWay(now, shard, to) && ownerOf(now, shard) !== to) ||
    (needsRoom === true && lacking(now).length > 0);
  const now = await cluster.until(over, waitMs, `the move of shard ${shard} to ${to}`, inTheWay);
  const owner = ownerOf(now, shard);
  if (owner === to) return;
  if (owner !== undefined && onItsWay(now, shard, to)) {
    await cluster.call('shard-move', { shard, to: owner });
    throw new FarkvError('ERR_BUSY', `the move is called off: ${lacking(now).join('; ')}`);
  }
  // What was in the way may have been asked for before the move was seen to be called off.
  const why = moveErrors(await cluster.status()).find((one) => one.calledOff);
  throw new FarkvError(
    'ERR_BUSY',
    `the move of shard ${shard} to ${to} was cancelled: ${owner ?? 'no server'} owns it. ${why === undefined ? `The log of ${to} has the reason` : errorLine(why)}`,
  );
}

export async function lookAt(cluster: Cluster): Promise<Look> {
  const status = await cluster.status();
  return { status, plan: (await cluster.call('shard-plan', {})) as readonly PlannedMove[] };
}

export function planText(plan: readonly PlannedMove[], status: ClusterStatus): string {
  const lack = lackOfRoom(status);
  const fitting = plan.filter((move) => lack(move) === undefined);
  const under = [...moveLines(status), ...plan.map(lack).filter((line) => line !== undefined)]
    .map((line) => `${line}\n`)
    .join('');
  if (fitting.length > 0)
    return (
      under +
      table(
        [{ title: 'SHARD', right: true }, { title: 'FROM' }, { title: 'TO' }, { title: 'COPY GIVEN UP BY' }],
        fitting.map((m) => [String(m.shard), m.from, m.to, m.gives ?? '-']),
      )
    );
  if (plan.length > 0) return under;
  return under === ''
    ? 'the shards are balanced: nothing to move\n'
    : `${under}the shards will be balanced when these moves are done\n`;
}

/** Nothing moves, and shards that were moved have given the copy up that is one too many: the next plan counts copies. */
function isSettled({ moves, shards, members }: ClusterStatus): boolean {
  const mayStay = members.some(({ draining }) => draining);
  const isSurplus = ({ copies }: ClusterStatus['shards'][number]): boolean =>
    copies !== undefined && copies.inSync > copies.wanted;
  return moves.length === 0 && (mayStay || !shards.some(isSurplus));
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
      const reasons = plan.flatMap((move) => failed.get(nameOf(move)) ?? []);
      if (reasons.length > 0) throw new FarkvError('ERR_BUSY', `the shards are not balanced: ${reasons.join('; ')}`);
      return moved;
    }
    const before = status;
    const make = async (move: PlannedMove): Promise<void> => {
      const lack = lackOfRoom(await cluster.status())(move);
      if (lack !== undefined) {
        failed.set(nameOf(move), lack);
        return;
      }
      try {
        await moveOne(cluster, { ...move, needsRoom: true }, waitMs);
        moved++;
      } catch (error) {
        // One that is called off says nothing of the others. A shard that somebody else has moved meanwhile is planned
        // anew.
        if (!isBusy(error)) throw error;
        if (epochOf(await cluster.status(), move.shard) === epochOf(before, move.shard))
          failed.set(nameOf(move), error.message);
      }
    };
    const lane = async (): Promise<void> => {
      for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) await make(next);
    };
    await Promise.all(Array.from({ length: MOVES_AT_ONCE }, lane));
    await cluster.until(isSettled, waitMs, 'the end of all moves under way', errorLines);
  }
}
