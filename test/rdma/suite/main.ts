/**
 * The integration suite over real verbs. It runs on whatever RDMA device is there, or on the one that FARKV_RDMA_DEVICE
 * names: in the virtual machine of test/rdma/vm, or on a host with a NIC (npm run test:rdma:host). Arguments: words of
 * the titles of the parts to run, or `together` for those that measure nothing, so that other work does not disturb
 * them, or `alone` for the others.
 */
import { clientDies, serverDies, ycsb } from './cluster.js';
import { deviceUnderTest } from './device.js';
import { performance } from './performance.js';
import { oneSided } from './one-sided.js';
import { runParts } from './parts.js';
import { tenants } from './tenants.js';

const TOGETHER = [ycsb, serverDies, clientDies, tenants];
const ALONE = [oneSided, performance];

const { device, address, iwarp } = deviceUnderTest();
process.env.FARKV_RDMA_DEVICE = device; // for this process and all that it starts
console.log(`over ${device} (${iwarp ? 'iWARP' : 'RoCE or InfiniBand'}, ${address})`);
const words = process.argv.slice(2);
const passed =
  words[0] === 'together'
    ? await runParts(TOGETHER, device, [])
    : words[0] === 'alone'
      ? await runParts(ALONE, device, [])
      : await runParts([...TOGETHER, ...ALONE], device, words);
process.exit(passed ? 0 : 1);
