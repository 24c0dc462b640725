/** Checks of what peers send that the fuzzer's corpus alone shows: one or more behind each port. */
import { by, inFile } from './checks/in-file.mjs';

const native = by('fuzz_corpus');
/** Runs: in what order the threads of a target meet an input is another each time. */
const ADDRESS = { sanitizer: 'address', runs: 20 };

export const mutations = [
  ...inFile('native/fabric/tcp/mr.c', [
    ["fuzz: another tenant's region is READ", native('tcp_owner', ADDRESS), 'm->tenant != tenant || ', ''],
  ]),
  ...inFile('native/table/reader.h', [
    [
      'fuzz: bytes are believed without their checksum',
      native('memory', ADDRESS),
      '    if (fkv_extent_crc(landed, h.key_bytes, h.value_bytes) != h.crc) return FKV_READ_AGAIN;\n',
      '',
    ],
  ]),
];
