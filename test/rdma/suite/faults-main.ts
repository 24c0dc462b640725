/**
 * The faults of the wire, between the devices r1 (server) and r2 (clients) of vm/two-ends.sh. Arguments: words of the
 * titles of the parts to run.
 */
import { deviceUnderTest } from './device.js';
import { FIRST, linkDown, loss } from './faults.js';
import { runParts } from './parts.js';

process.env.FARKV_RDMA_DEVICE = `r${FIRST + 1}`; // of clients; servers are told theirs
// librdmacm keeps a context of each device for as long as this process lives: now, before they are counted.
const { device } = deviceUnderTest();
console.log(`between r${FIRST} and ${device}`);
process.exit((await runParts([loss, linkDown], `r${FIRST}`, process.argv.slice(2))) ? 0 : 1);
