import test from 'ava';
import { readFileSync } from 'node:fs';
import { inRepository } from '../../bench/repository.js';
import { loadSettings } from './load.js';
import { camelName, OPTION_NAMES, SERVER_OPTIONS } from './options.js';
import type { ServerOptions } from './server-options.js';

/** A value for every option: one that is missing here, or unknown to the table, does not compile. */
const EVERY: Required<ServerOptions> = {
  config: '/etc/farkv.yaml',
  id: 's1',
  peers: { s1: ['127.0.0.1:9400'] },
  join: ['127.0.0.1:9400'],
  shards: 4,
  level: 'durable',
  sync: '50ms',
  voters: 3,
  zone: 'rack-1',
  witness: true,
  dataDir: '/var/lib/farkv',
  listen: '127.0.0.1:7400',
  peerListen: '127.0.0.1:9400',
  fabricListen: '127.0.0.1:8400',
  httpListen: ['127.0.0.1:7600', '[::1]:7600'],
  rdmaDevice: ['mlx5_0', 'mlx5_1'],
  rdmaTrafficClass: 106,
  advertise: 'db1.example.net',
  transport: ['shm', 'tcp'],
  strict: true,
  memory: '64mb',
  hugePages: 'off',
  secrets: '/etc/farkv',
  token: 'of clients',
  tokenFile: '/etc/farkv/token',
  readerToken: 'of readers',
  readerTokenFile: '/etc/farkv/reader-token',
  operatorToken: 'of operators',
  operatorTokenFile: '/etc/farkv/operator-token',
  monitorToken: 'of monitors',
  monitorTokenFile: '/etc/farkv/monitor-token',
  peerToken: 'of servers',
  peerTokenFile: '/etc/farkv/peer-token',
  joinTokenFile: '/etc/farkv/join-token',
  tenants: { a: { shards: 2, tokenFile: '/etc/farkv/a', maxClients: 7 } },
  tlsCert: '/etc/farkv/server.crt',
  tlsKey: '/etc/farkv/server.key',
  tlsCa: '/etc/farkv/ca.crt',
  insecureData: true,
  insecure: false,
  dataPlaneThreads: 2,
  maxClients: 100,
  clientQuota: 10,
  maxConnections: 100,
  leaseMs: '2s',
  drainMs: 5000,
  ownerLeaseMs: 800,
  polling: 'never',
  electionMs: 400,
  replaceVoterAfter: 'never',
  logLevel: 'warn',
  slowMs: 0,
  logFormat: 'json',
};

test('each option of the table can be given to startServer, as its type says', (t) => {
  t.deepEqual(Object.keys(EVERY).sort(), ['config', ...OPTION_NAMES.map(camelName)].sort());
  const given = new Map<string, unknown>(Object.entries(EVERY));
  for (const name of OPTION_NAMES) t.notThrows(() => SERVER_OPTIONS[name].parse(given.get(camelName(name))), name);
});

test('the chart of Helm takes the options that there are', (t) => {
  const schema = JSON.parse(readFileSync(inRepository('deploy/helm/farkv/values.schema.json'), 'utf8')) as {
    readonly properties: { readonly options: { readonly propertyNames: { readonly enum: readonly string[] } } };
  };
  t.deepEqual(schema.properties.options.propertyNames.enum, OPTION_NAMES);
});

test('options that only the table named are taken from a program', (t) => {
  const options: ServerOptions = { zone: 'rack-1', insecureData: true, replaceVoterAfter: '1h', logFormat: 'json' };
  t.like(loadSettings({ ...options }, { env: {}, dashes: false }), {
    zone: 'rack-1',
    insecureData: true,
    replaceVoterMs: 3_600_000,
    logFormat: 'json',
  });
});

test('an option has the type of its kind', (t) => {
  // @ts-expect-error: a flag is true or false
  const flag: ServerOptions = { strict: 'yes' };
  // @ts-expect-error: one of the texts that the option takes
  const choice: ServerOptions = { polling: 'often' };
  // @ts-expect-error: no option has this name
  const unknown: ServerOptions = { memroy: '1gb' };
  t.is([flag, choice, unknown].length, 3);
});
