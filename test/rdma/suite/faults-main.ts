/** The faults of the wire, between the devices r1 (server) and r2 (clients) of vm/two-ends.sh. */
import { wire } from './faults.js';
import { runParts } from './parts.js';

process.env.FARKV_RDMA_DEVICE = 'r2';   // of clients; servers are told theirs
console.log('between r1 and r2');
process.exit((await runParts([wire], 'r1', [])) ? 0 : 1);
