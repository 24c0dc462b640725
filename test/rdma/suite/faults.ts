/**
 * Faults of the wire: in the virtual machine's two-ends.sh the server's device is r1 on v1, the client's r2 on v2 (or 3
 * and 4, as FARKV_RDMA_WIRE says), and their packets cross a veth pair. Loss and reordering are the device's to mend
 * (retransmission); a link that is down breaks connections, and clients come back. Never a wrong value, never a hang.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { Load } from './load.js';
import type { Part } from './parts.js';

function run(command: string): string {
  const { status, stdout, stderr } = spawnSync('bash', ['-c', `set -e; ${command}`], { encoding: 'utf8' });
  if (status !== 0) throw new Error(`${command}: ${stderr}`);
  return stdout;
}

export const FIRST = Number(process.env.FARKV_RDMA_WIRE ?? 1);
const SECOND = FIRST + 1;
const LINKS = [`v${FIRST}`, `v${SECOND}`] as const;

/** Packets that netem dropped on both links since it was set. */
function dropped(): number {
  return LINKS.reduce(
    (sum, link) => sum + Number(/dropped (\d+)/.exec(run(`tc -s qdisc show dev ${link} root`))?.[1] ?? 0),
    0,
  );
}

const PAIRS = 1000;
const DISTURBANCES = [
  ['1 % loss', 'loss 1%', true],
  ['5 % loss', 'loss 5%', true],
  ['reordering', 'delay 500us reorder 75% 50%', false],
] as const;

/** What goes with a link that goes down: two-ends.sh's way over the wire. */
const WAY_BACK = [
  `ip route replace 10.${FIRST}.0.2 dev ${LINKS[0]} src 10.${FIRST}.0.1 table 10${FIRST}`,
  `ip route replace 10.${FIRST}.0.1 dev ${LINKS[1]} src 10.${FIRST}.0.2 table 10${SECOND}`,
  `ip neigh replace 10.${FIRST}.0.2 lladdr 02:00:00:00:01:0${SECOND} dev ${LINKS[0]} nud permanent`,
  `ip neigh replace 10.${FIRST}.0.1 lladdr 02:00:00:00:01:0${FIRST} dev ${LINKS[1]} nud permanent`,
].join('; ');
const DOWN_MS = 3000;

function netem(rule: string): void {
  for (const link of LINKS)
    run(`tc qdisc del dev ${link} root 2> /dev/null || :; tc qdisc add dev ${link} root netem ${rule}`);
}

export const loss: Part = [
  'loss of 1 % and 5 %, and reordering: no wrong value, nothing hangs',
  async ({ cluster: start, client: connectTo }) => {
    const cluster = await start({ servers: 1, shards: 2 });
    const client = await connectTo(cluster);
    const load = new Load(client, 8, 'counter');
    await load.until(200);
    for (const [name, rule, drops] of DISTURBANCES) {
      netem(rule);
      const begun = Date.now();
      await load.until(PAIRS);
      console.log(
        `   ${name}: ${PAIRS} pairs of PUT and GET in ${Date.now() - begun} ms, ${dropped()} packets dropped`,
      );
      if (drops) assert.ok(dropped() > 0, 'the packets do not cross the wire');
    }
    for (const link of LINKS) run(`tc qdisc del dev ${link} root`);
    await load.stop();
  },
];

export const linkDown: Part = [
  'a link that is down for 3 s: no wrong value, nothing hangs, clients come back',
  async ({ cluster: start, client: connectTo }) => {
    const cluster = await start({ servers: 1, shards: 2 });
    const client = await connectTo(cluster);
    const load = new Load(client, 8, 'counter');
    await load.until(200);
    run(`ip link set ${LINKS[0]} down`);
    await new Promise((resolve) => setTimeout(resolve, DOWN_MS));
    run(`ip link set ${LINKS[0]} up; ${WAY_BACK}`);
    const begun = Date.now();
    await load.until(200);
    console.log(`   link down for ${DOWN_MS} ms: 200 pairs in ${Date.now() - begun} ms after it came back`);
    await load.stop();
  },
];
