/**
 * What a false server, another store, or a file calls things reaches no terminal as it is: the commands are walked, each
 * text field of their sources is hostile, and what they print has no control character but line feeds and tabs.
 */
import test, { type ExecutionContext } from 'ava';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { importFromRedis } from '../../tools/redis/import-redis.js';
import { leftOutLines } from '../../tools/redis/left-out.js';
import { crc32c } from '../../tools/backup/format.js';
import { falseControl, falseRedis } from '../support/false-server.js';
import { printed } from '../support/run-here.js';

/** Colours, the title, C1, DEL, a mark of direction, separators, and a line of its own. */
const EVIL = 'x\x1b[2J\x1b]0;title\x07\x9b31m\x7f\u202etxt\u2028\u200b\r\n\tFORGED\nFORGED';
/** Where the protocol lets no control character through. */
const TURNED = 'x\u202etxt\u2028\u200b';

function harmless(t: ExecutionContext, text: string, what: string): void {
  t.notRegex(text, /(?![\n\t])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u, `${what}: ${JSON.stringify(text)}`);
  t.notRegex(text, /^\t?FORGED/m, `${what} prints a line that the other end has made: ${JSON.stringify(text)}`);
}

const member = {
  id: EVIL,
  state: EVIL,
  leader: false,
  role: EVIL,
  replacedBy: EVIL,
  draining: true,
  control: [EVIL],
  peer: [EVIL],
  fabric: [{ provider: EVIL, address: EVIL, worker: 0 }],
  memoryBytes: 1,
  zone: EVIL,
  node: { id: EVIL, version: EVIL, role: EVIL, clients: 1, term: 1, values: { snapshots: 1 }, group: {} },
};
const copies = {
  config: 1,
  inSync: 1,
  wanted: 2,
  minInSync: 1,
  copies: [{ member: EVIL, state: EVIL }],
  trouble: EVIL,
};
const moveError = { shard: 0, from: EVIL, to: EVIL, attempts: 2, reason: EVIL, calledOff: false, agoMs: 1 };
const STATUS = {
  clusterId: EVIL,
  formatVersion: 1,
  mapEpoch: 1,
  leader: EVIL,
  term: 1,
  answeredBy: EVIL,
  members: [member, { ...member, state: 'unreachable' }],
  shards: [
    { shard: 0, owner: EVIL, worker: 0, epoch: 1, state: EVIL, layoutEpoch: 1, buckets: 1, regions: [], copies },
    {
      ...{ shard: 1, owner: EVIL, worker: 0, epoch: 1, state: 'serving', layoutEpoch: 1, buckets: 1 },
      regions: [{ provider: EVIL, kind: EVIL, count: 1, bytes: 1 }],
    },
  ],
  moves: [{ shard: 0, to: EVIL }],
  moveErrors: [moveError, { ...moveError, calledOff: true }],
  failovers: [{ from: EVIL, to: EVIL, shards: 1, why: EVIL, values: EVIL, agoMs: 1 }],
  tenants: [{ name: EVIL, firstShard: 1, shards: 1 }],
  replication: [{ level: 'replicated', replicas: 2, minInSync: 1, onLoss: EVIL, tenant: EVIL }],
  [EVIL]: EVIL,
};
const CLIENT = {
  ...{ number: 1, id: '01'.repeat(8), access: 'writer', tenant: TURNED, name: TURNED, address: TURNED },
  ...{ sinceMs: 0, tls: true },
};

function answerOf(method: string): unknown {
  if (method === 'status') return STATUS;
  if (method === 'clients') return { clients: [CLIENT], count: 1 };
  if (method === 'shard-plan') return [{ shard: 0, from: EVIL, to: EVIL }];
  if (method === 'shard-reset') return { to: EVIL, lost: [{ member: EVIL, state: EVIL, silentMs: 1 }] };
  return EVIL;
}

const COMMANDS = [
  'status',
  'status --json',
  'status --safe-to-stop s1',
  'status --safe-to-stop s1 --json',
  'top',
  'member list',
  'member list --json',
  'member add s4',
  'member remove s1',
  'shard move 0 s1 --wait 1ms',
  'shard rebalance --dry-run',
  'shard rebalance --dry-run --json',
  'shard rebalance --wait 1ms',
  'shard reset 0',
  'shard reset 0 --accept-loss --wait 1ms',
  'drain s1 --wait 1ms',
  'replication show',
  'replication set --level replicated --tenant a',
  'clients',
  'clients --json',
  'revoke --tenant a',
  'join-token create',
  'secrets rotate-tickets',
] as const;

test.serial('a false server: every command of an operator', async (t) => {
  const address = await falseControl(t, answerOf);
  // The clients of a server are asked for at the address that it names.
  const honest = await falseControl(t, (method) =>
    method === 'status' ? { ...STATUS, members: [{ ...member, control: [address] }] } : answerOf(method),
  );
  for (const command of COMMANDS) {
    const { text } = await printed([...command.split(' '), '--connect', honest, '--timeout', '1m']);
    t.not(text, '', command);
    harmless(t, text, command);
  }
  const { text } = await printed(['status', '--connect', address, '--timeout', '1m']);
  t.regex(text, /x\\x1b\[2J\\x1b\]0;title\\x07\\x9b31m\\x7f\\u202etxt\\u2028\\u200b\\r\\n\\tFORGED/);
  const json = await printed(['status', '--json', '--connect', address, '--timeout', '1m']);
  t.true((JSON.parse(json.text) as typeof STATUS).clusterId.includes('\\x1b[2J'));
});

test.serial('a false server whose list of clients does not end', async (t) => {
  let asked = 0;
  const address: string = await falseControl(t, (method) => {
    if (method === 'status') return { ...STATUS, members: [{ ...member, id: 's1', control: [address] }] };
    // Whoever asks for ever gets an end, and an answer that is none of it.
    if (++asked > 100) throw new Error('asked too often');
    return { clients: [], count: 9, next: 7 };
  });
  const { text, code } = await printed(['clients', '--connect', address, '--timeout', '1m']);
  t.is(code, 1);
  t.regex(text, /^s1 did not answer: its list of clients does not come to an end/m);
});

test.serial('a false server that refuses, at the door or later', async (t) => {
  const refusal = { t: 'welcome', ok: false, code: 'ERR_UNAUTHORIZED', message: TURNED, versions: [1, 1] } as const;
  const atDoor = await falseControl(t, answerOf, refusal);
  const later = await falseControl(t, () => {
    throw new Error(TURNED);
  });
  const inVain = ['--timeout', '1m', '--connect'];
  const commands = [...COMMANDS.map((command) => command.split(' ')), ['get', 'key'], ['put', 'key', 'v'], ['scan']];
  for (const command of commands) {
    const { text, code } = await printed([...command, ...inVain, atDoor]);
    t.true(text.includes('\\u202e') && code !== undefined && code !== 0, `${command.join(' ')}: ${text}`);
    harmless(t, text, command.join(' '));
  }
  for (const command of COMMANDS) harmless(t, (await printed([...command.split(' '), ...inVain, later])).text, command);
});

test.serial('a false HTTP port: farkv ready reads the beginning of its answer', async (t) => {
  const server = createServer((_, response) => {
    response.statusCode = 503;
    response.write(EVIL);
    // It never ends.
    const more = (): void => {
      if (!response.destroyed) response.write('x'.repeat(1 << 16), () => setImmediate(more));
    };
    more();
  }).listen(0, '127.0.0.1');
  t.teardown(() => server.close());
  await once(server, 'listening');
  const at = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const { text, code } = await printed(['ready', `http://${at}`, '--timeout', '1m']);
  t.is(code, 1);
  t.true(text.includes('FORGED') && text.length < 10_000);
  harmless(t, text, 'ready');
});

test.serial('a false manifest', async (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'farkv-manifest-'));
  t.teardown(() => rmSync(directory, { recursive: true }));
  const whole = {
    ...{ format: 'farkv-backup-1', id: '01'.repeat(16), version: TURNED, clusterId: TURNED, hashSeed: '01'.repeat(16) },
    ...{ startedAt: '2026-01-01T00:00:00.000Z', endedAt: '2026-01-01T00:00:00.000Z', entries: 0, bytes: 0 },
    ...{ tenants: [{ name: TURNED, shards: 0, entries: 0 }], files: [] },
  };
  const signed = { ...whole, sum: crc32c(Buffer.from(JSON.stringify(whole))) };
  for (const [manifest, said] of [
    [JSON.stringify(signed), /\\u202e|\\x1b/],
    [EVIL, /\\u202e|\\x1b/],
    [JSON.stringify({ ...signed, format: EVIL }), /is damaged/],
  ] as const) {
    writeFileSync(join(directory, 'manifest.json'), manifest);
    const { text } = await printed(['values', 'check', directory]);
    t.regex(text, said);
    harmless(t, text, manifest);
  }
});

test('a false Redis server: its errors, its types and its keys', async (t) => {
  const line = EVIL.replaceAll(/[\r\n]/g, ' ');
  const target = { namespace: () => ({ withCodec: () => ({}) }) } as unknown as Parameters<typeof importFromRedis>[0];
  const options = { namespace: 0, keep: false, skip: true, onRead: () => undefined };
  const types = await falseRedis(t, ([command]) => {
    if (command === 'DBSIZE') return ':1\r\n';
    if (command === 'SCAN') return `*2\r\n$1\r\n0\r\n*1\r\n$${Buffer.byteLength(line)}\r\n${line}\r\n`;
    return command === 'STRLEN' ? `-${line}\r\n` : `+${line}\r\n`;
  });
  const { leftOut } = await importFromRedis(target, types, options);
  const [said = ''] = leftOutLines(leftOut);
  t.regex(said, /^not imported, type x\\x1b/);
  harmless(t, said, 'the names of what was left out');
  const refuses = await falseRedis(t, () => `-${line}\r\n`);
  const error = await t.throwsAsync(importFromRedis(target, refuses, options));
  harmless(t, error.message, 'an error');
});
