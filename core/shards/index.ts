/**
 * core/shards: the shards of one server as a pure state machine, in the shape of core/raft. It has no I/O,
 * no clock and no randomness but what is injected; the same inputs give the same outputs. The server
 * (server/shards/driver.ts) and the simulator (test/sim/owners.ts) drive it.
 *
 * Making one
 *   const shards = new Shards({ memberId, memberIncarnation, random64, ...limits });       one for each start of a
 *                                                                                          server
 *
 * Input
 *   see(metadata)       the metadata as this server has applied it; after each round that changed it. Before the server
 *                       has joined it does nothing.
 *   lastRunOver()       the leases of the server's last run are over, and this run holds its own lease from the leader
 *                       (core/metadata/owner-leases.ts)
 *   done({ of, failed}) the result of an action that had the ticket `of`, exactly once. `stop`, `propose` and `wait` do
 *   not
 *                       fail. A `wait` is done when its time is over: so the driver owns the clock.
 *   copyNoticed(shard, copy, what)   the data plane of an owner has noticed something of a copy (actions.ts)
 *   ownerSuspected(shard, copy, suspicion)   the data plane of a copy says that the owner is gone, or that it is not
 *   leave()             the server will end; `staying` says what it has not given away yet, `left` what becomes of that
 *   endAll()            the server ends
 *
 * Output: the loop of the driver, after every input, in the same turn
 *   for (const action of shards.take()) execute(action);
 *   - The data plane must be asked in the order of the actions, and in the turn of the input: whoever grants this owner
 *     a lease waits until every `close`, `pause` and `step down` that followed from the metadata has reached the data
 *     plane (server/shards/fence.ts). The data plane keeps that order: a `serve` from before has no effect after it.
 *   - A result is given back in a later turn.
 *
 * A shard that is this server's (owned.ts)
 *     opening ---> announced ---> serving ---> handing ---> closing, or a copy
 *     open(epoch, a random incarnation); nothing is answered
 *              the metadata has its regions, then the last run's leases are over; serve
 *                            this server is drained or ends, or the shard is moved, and a copy that stays, or that of the
 *                            server that it moves to, is in sync
 *                                          hand over: clients wait until nobody relies on it here and the copy has all;
 *                                          `shard-handover` is proposed
 *                                                       another server owns it
 *   From handing back to serving, with all that is in it, when nothing came of the handover. From everywhere to closing
 *   when the shard is not this server's in this epoch any more, but from serving and handing to a copy (step down).
 *
 * A copy, here, of a shard that is another server's (backup.ts)
 *     opening ---> copying ---> joining ---> following ---> leading ---> announced, as above
 *     open(the owner's epoch, the copy's id), an empty table
 *              copy, until little is left; its name is proposed
 *                           follow: the owner's changes come over a link
 *                                      it may be in sync any time; follows whoever owns the shard
 *                                                   the shard is this server's, with this copy: lead
 *   A copy in sync whose owner seems to be gone suspects it: in turns, by rank, such copies propose to be promoted. The
 *   data plane serves when no lease that the copy has given can be relied on, so a suspicion may be wrong.
 *   What failed before joining: clearing (stop, close), resting, opening again, under another id. What failed since:
 *   renouncing (another name is proposed, as one that no table has) first. From everywhere to clearing when the metadata
 *   does not have it. After some attempts: calling off (its removal is proposed).
 *
 * Copies elsewhere of a shard that is this server's (progress.ts), each by its id
 *     joined ---> require ---> proposed ---> in sync ---> late ---> removed
 *   An owner that gives its shard away hands it over to one of them that is in sync (handover.ts, docs/handover.md).
 *   Every config that was applied is told to the data plane (configure), the first before the shard is served.
 *
 * Invariants, by name
 *   S-epoch: A shard is opened under an epoch that the metadata gave to this start of the server, or as a copy under its
 *     owner's. So versions never repeat.
 *   S-regions: A shard is served only when the metadata names this very opening: its regions, or of a promoted copy its
 *     incarnation, under which clients ask for them. Readers find these and no others.
 *   S-leases: A shard is served only when the leases of the last run are over: nobody reads an older value after a
 *     newer one.
 *   S-closed: When the metadata has taken a shard, its `close` or `step down` is asked for in the same turn,
 *     whatever else is under way.
 *   S-idle: A copied table is closed only when nothing of the copy is under way.
 *   S-result: A result counts only in the state that asked for it.
 *   S-following: A copy follows its owner only when the metadata has it by its name, and is thrown away only when
 *     the metadata does not have it by that name. So no copy is in sync that was thrown away. While nobody is there
 *     whom it could follow, one that joins is kept: it may be all that is left of the shard.
 *   S-led: A shard is led with the copy that the metadata names, and no other. One that comes with a copy which is
 *     not here is not opened: the metadata is told so (`copy-missing`).
 *   S-config: A copy is proposed in the config in which the data plane has promised to wait for it, and the data
 *     plane is told each config in the order in which it was applied.
 *   S-whole: A copy is called whole, when it is removed, only by an owner that has served in this epoch or opened
 *     the shard empty.
 *   S-anew: A copy that joins begins anew with each new owner, unless it followed the epoch before: that owner does
 *     not know it.
 *   S-handover: A handover is proposed only when the data plane has done it, in an epoch in which the shard was
 *     served; its owner goes on only in a later config.
 *   S-required: A copy is required only by an owner that has served in this epoch: what is promoted after it does
 *     not wait for the leases of earlier owners, or of the last run. Or of a new shard, when those leases are over.
 *   S-new: A new shard, whose values are to survive its server, counts its own copy as one in sync just before it is
 *     served: when another server has one, or none came for a time. So what is lost before that was never there.
 *
 * Files: shards (all of them), owned, handover, heirs, progress, rejoin-backoff, backup, promotion, copy-end, copy-entry,
 * base, missing-copies, recovered, context (the metadata, and the way out), local-shard (the states), actions,
 * changed-shards, report.
 */
export type {
  Action,
  Request,
  CopiesNow,
  ReplicaEvent,
  Failure,
  RejoinBackoff,
  Left,
  ShardEvent,
  Result,
  Effect,
} from './actions.js';
export type { Found } from './recovered.js';
export { Shards, type ShardsOptions } from './shards.js';
