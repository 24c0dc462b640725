/**
 * core/shards: the life of the shards of one server as a pure state machine, in the shape of core/raft. It has no I/O,
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
 *   endAll()            the server ends
 *
 * Output: the loop of the driver, after every input, in the same turn
 *   for (const action of shards.take()) execute(action);
 *   - The data plane must be asked in the order of the actions, and in the turn of the input: whoever grants this owner
 *     a lease waits until every `close` and `pause` that followed from the metadata has reached the data plane
 *     (server/shards/fence.ts).
 *   - A result is given back in a later turn.
 *
 * A shard that is this server's (held.ts)
 *     opening ---> announced ---> serving ---> draining ---> sealed ---> paused ---> closing
 *     open(epoch, a random incarnation); nothing is answered
 *              the metadata has its regions, then the last run's leases are over; serve
 *                            a move of the shard has a copy that is nearly complete (`last`)
 *                                         leases are made short; all goes on as usual
 *                                                      seal: no changes are taken, reads go on; not longer than
 *                                                      SEALED_MS, then the move is called off
 *                                                                 `copied`: the copy is complete. pause: nothing is
 *                                                                 answered; then `released` is proposed
 *                                                                             another server owns it
 *   From draining, sealed and paused back to serving, with all that is in it, when the move is no more: it was called
 *   off, or the copy is lost. From everywhere to closing when the shard is not this server's in this epoch any more.
 *
 * A shard that moves to this server (coming.ts)
 *     opening ---> copying ---> last ---> copied ---> given
 *     open(the next epoch), an empty table
 *              copy, until little is left; `last` is proposed
 *                           finish: the owner is sealed, both have the same
 *                                     `copied` is proposed; waits for the owner to give the shard up
 *                                                `released` is applied: it is this server's, and goes on as announced
 *   If something fails before copied: clearing (stop, close), resting, opening again; after some attempts clearing,
 *   calling off.
 *
 * Invariants
 *    1. A shard is opened under an epoch that the metadata gave to this start of the server, or copied under the epoch
 *       behind its owner's. So versions never repeat.
 *    2. A shard is served only when the metadata has the regions of this very opening: readers find these and no
 *       others.
 *    3. A shard is served only when the leases of the last run are over: nobody reads an older value after a newer one.
 *    4. When the metadata has taken a shard, its `close` is asked for in the same turn, whatever else is under way.
 *    5. A shard is sealed only for the copy that the metadata names, and takes changes again only when that move is no
 *       more. So a complete copy has every change that was ever acknowledged.
 *    6. A shard is paused only when its copy is complete, and `released` is proposed only when the pause is done: then
 *       nobody relies on it here.
 *    7. A paused shard is served again only when its copy is lost. `released` names the copy, so one that comes late is
 *       for no other.
 *    8. `copied` is proposed only after `finish`, under the name of this copy. No other copy has that name once it was
 *       proposed.
 *    9. A copy is used only when the metadata says that it is complete and the shard is given up for it by name. Any
 *       other end throws it away.
 *   10. A copied table is closed only when nothing of the copy is under way.
 *   11. A result counts only in the state that asked for it.
 *
 * Files: shards (all of them), held, coming, common (what the metadata says of one), life (the states), actions,
 * short-leases, changed-shards.
 */
export type { Action, Asked, Failure, Note, Result, Told } from './actions.js';
export { Shards, type ShardsOptions } from './shards.js';
