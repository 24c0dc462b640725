/**
 * The integration suite over real verbs. It runs on whatever RDMA device is there, or on the one that FARKV_RDMA_DEVICE names: in the
 * virtual machine of test/rdma/vm, or on a host with a NIC (npm run test:rdma:host). Arguments: words of the titles of the parts to run.
 */
import { clientDies, serverDies, ycsb } from './cluster.js';
import { deviceUnderTest } from './device.js';
import { performance } from './performance.js';
import { oneSided } from './one-sided.js';
import { runParts } from './parts.js';

const { device, address, iwarp } = deviceUnderTest();
process.env.FARKV_RDMA_DEVICE = device;   // for this process and all that it starts
console.log(`over ${device} (${iwarp ? 'iWARP' : 'RoCE or InfiniBand'}, ${address})`);
process.exit((await runParts([ycsb, oneSided, serverDies, clientDies, performance], device, process.argv.slice(2))) ? 0 : 1);
