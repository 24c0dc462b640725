/** Pauses that are so long that connections break, and must be made anew before owners can ask for leases. */
import test from 'ava';
import { losesNothing } from '../support/pauses.js';

for (const stopped of [2, 3] as const) {
  test.serial(`nothing is lost when ${stopped} of three servers, the leader among them, are stopped for 20 s`, (t) =>
    losesNothing(t, { transport: 'tcp', stopped, stopMs: 20_000 }),
  );
}
