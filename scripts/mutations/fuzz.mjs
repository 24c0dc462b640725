/** Checks of what peers send that the fuzzer's corpus alone shows: one or more behind each port. */
import { by, inFile } from './checks/in-file.mjs';

const native = by('fuzz_corpus');
/** Runs: in what order the threads of a target meet an input is another each time. */
const ADDRESS = { sanitizer: 'address', runs: 20 };
const corpus = (target) => ({
  test: 'test/fuzz/corpus.test.ts',
  title: `${target}: nothing is broken by what the fuzzer kept`,
});

export const mutations = [
  ...inFile('native/dataplane/connection.c', [
    [
      'fuzz: a challenge is answered twice',
      native('data_port', ADDRESS),
      '    challenge_answered(&w->challenges, h->challenge);\n',
      '',
    ],
  ]),
  ...inFile('native/dataplane/change_log.c', [
    [
      'fuzz: a note of the log of changes is of any length',
      native('data_port', ADDRESS),
      'head[1] == 0 || head[1] > FKV_KEY_MAX || left - HEAD < head[1]',
      'head[1] == 0',
    ],
  ]),
  ...inFile('native/dataplane/request.c', [
    [
      'fuzz: a ticket allows everything',
      native('data_port', ADDRESS),
      '    if ((c->ticket.flags & needed) != needed) return FKV_UNAUTHORIZED;\n',
      '',
    ],
  ]),
  ...inFile('native/dataplane/backup.c', [
    [
      'fuzz: a copy that has shown what its new owner has not goes on',
      native('links'),
      'if (t->epoch > b->place.epoch && b->place.committed > t->last) return backup_fails(b, FKV_BAD_REQUEST);',
      '',
    ],
  ]),
  ...inFile('native/fabric/tcp/mr.c', [
    ["fuzz: another tenant's region is READ", native('tcp_owner', ADDRESS), 'm->tenant != tenant || ', ''],
    ['fuzz: a region is READ beyond its end', native('tcp_owner', ADDRESS), ' || bytes > m->bytes - at', ''],
  ]),
  ...inFile('native/fabric/shm/lane.h', [
    [
      'fuzz: a message in the ring may be of any length',
      native('shm_owner', ADDRESS),
      'header > in->max_message || ',
      '',
    ],
  ]),
  ...inFile('native/fabric/shm/attach.c', [
    [
      "fuzz: another tenant's region is handed out",
      native('shm_owner', ADDRESS),
      'm->tenant == c->orders.tenant && ',
      '',
    ],
  ]),
  ...inFile('native/table/reader.h', [
    ['fuzz: an extent is longer than its memory', native('memory', ADDRESS), ' && all <= bytes;', ';'],
    [
      'fuzz: bytes are believed without their checksum',
      native('memory', ADDRESS),
      '    if (fkv_extent_crc(landed, h.key_bytes, h.value_bytes) != h.crc) return FKV_READ_AGAIN;\n',
      '',
    ],
  ]),
  ...inFile('native/wire/wire.c', [
    [
      'fuzz: an entry of a scan is longer than the body',
      native('replies', ADDRESS),
      '    if (bytes > left) return false;\n',
      '',
    ],
    [
      'fuzz: a piece lies outside its value',
      native('replies', ADDRESS),
      ' && (uint64_t)r->offset + r->body_bytes <= r->value_bytes',
      '',
    ],
  ]),
  ...inFile('core/protocol/frame.ts', [
    ['fuzz: a frame may be of any length', corpus('frames'), 'bytes === 0 || bytes > this.limits.bytes', 'bytes === 0'],
  ]),
  ...inFile('server/control/control-plane.ts', [
    [
      'fuzz: calls of clients are answered',
      corpus('control'),
      'if (!isCaller(access)) {',
      'if (access === undefined) {',
    ],
  ]),
  ...inFile('server/admin-calls.ts', [
    [
      'fuzz: a monitor may change the cluster',
      corpus('control'),
      "access === 'operator' && Object.hasOwn(checks, method)",
      'Object.hasOwn(checks, method)',
    ],
  ]),
  ...inFile('server/control/peer-plane.ts', [
    [
      'fuzz: a joiner sends Raft messages',
      corpus('peers'),
      "if (peer.access !== 'peer')",
      'if (peer.access === undefined)',
    ],
  ]),
  ...inFile('client/control-connection.ts', [
    [
      'fuzz: a client takes any frame for a map',
      corpus('client'),
      "if (frame.t !== 'map') throw",
      "if (frame.t === 'hello') throw",
    ],
  ]),
];
