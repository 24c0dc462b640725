/** More of what sim.test.ts and copies.test.ts do: other seeds; and mistakes, each of which a simulation would find. */
import test from 'ava';
import { COPY_MISTAKES, type CopyMistake } from './copies/server.js';
import { histories } from './histories.js';
import { MISTAKES, type Mistake } from './mistakes.js';
import { finds, findsCopy } from './simulate.js';

for (const [first, last] of [
  [21, 40],
  [41, 60],
  [61, 80],
] as const) {
  test.serial(`nothing that Raft promises is broken in the histories of seeds ${first} to ${last}`, (t) =>
    histories(t, { first, last }),
  );
}

test.serial('never are there two owners of one shard in the histories of seeds 21 to 40', (t) =>
  histories(t, { first: 21, last: 40, application: 'owners' }),
);

/**
 * The first seed that found it; the search begins there, and goes on where a change elsewhere has made another history
 * of it.
 */
const FOUND_BY: Readonly<Record<Mistake, number>> = {
  'new leaders do not wait': 3,
  'grants go on while shards are taken': 172,
  'leases count from the answer': 7,
  'owners do not read the log first': 7,
  'any leader is believed': 14,
  'leaders call owners dead by the clock alone': 7,
  'leaders count the time in which they stood still': 7,
};

for (const mistake of MISTAKES) {
  test.serial(`it would be found if ${mistake}`, (t) => {
    const first = FOUND_BY[mistake];
    let seed = first;
    while (seed < first + 400 && !finds(mistake, seed, 20_000)) seed++;
    t.log(`seed ${seed}`);
    t.true(seed < first + 400);
  });
}

/** A mistake with copies is to be found within so many. */
const SEARCHED = 40;

/** The first seed that found it; the search begins there. */
const COPIES_FOUND_BY: Readonly<Record<CopyMistake, number>> = {
  'owners let a copy go before its removal is applied': 1,
  'owners give up an addition that may still come': 1,
  'owners ask for a copy before they wait for it': 1,
  'owners add copies under long leases of clients': 20,
  'owners call every copy whole': 140,
  'new owners serve before the leases that they gave have ended': 1,
  'leaders do not wait for the leases of earlier starts': 123,
  'owners hand over while clients rely on them': 91,
  'owners hand over what the heir may lack': 108,
  'owners go on though a handover may still come': 67,
  'durable copies acknowledge what is not on their disks': 46,
  'copies come back as if they had all that they acknowledged': 370,
  'owners let a copy go before their disk has what was answered': 2994,
};

for (const mistake of COPY_MISTAKES) {
  test.serial(`it would be found if ${mistake}`, (t) => {
    const first = COPIES_FOUND_BY[mistake];
    let seed = first;
    while (seed < first + SEARCHED && !findsCopy(mistake, seed, 20_000)) seed++;
    t.log(`seed ${seed}`);
    t.true(seed < first + SEARCHED);
  });
}
