/**
 * The manifests for Kubernetes: that they are YAML whose parts fit each other and this server. No cluster has seen them
 * here. And of systemd's unit, which gives a server the same time to stop.
 */
import test from 'ava';
import { readFileSync } from 'node:fs';
import { parseAllDocuments } from 'yaml';
import { inRepository } from '../bench/repository.js';
import { EXIT } from '../server/cli/exit-codes.js';
import { loadSettings } from '../server/config/load.js';

interface Probe {
  readonly httpGet: { readonly path: string; readonly port: string };
}
interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly replicas?: number;
    readonly maxUnavailable?: number;
    readonly serviceName?: string;
    readonly clusterIP?: string;
    readonly ports?: readonly { readonly name: string; readonly port: number }[];
    readonly template?: {
      readonly spec: {
        readonly terminationGracePeriodSeconds: number;
        readonly containers: readonly {
          readonly env: readonly { readonly name: string; readonly value?: string }[];
          readonly ports: readonly { readonly name: string; readonly containerPort: number }[];
          readonly startupProbe: Probe;
          readonly livenessProbe: Probe;
          readonly readinessProbe: Probe;
        }[];
      };
    };
  };
}

const documents = parseAllDocuments(readFileSync(inRepository('deploy/kubernetes/farkv.yaml'), 'utf8'));
const manifests = documents.map((document) => document.toJS() as Manifest);
const LEASE_MS_MOST = 60_000;
/** A server that stops waits for others, without --drain-ms, and then for the leases of clients. */
const STOP_MS_MOST = 2 * (2 * LEASE_MS_MOST + 1000);

test('the manifests are YAML without errors, and name each other', (t) => {
  t.deepEqual(
    documents.flatMap(({ errors }) => errors),
    [],
  );
  t.deepEqual(
    manifests.map(({ kind }) => kind),
    ['Service', 'Service', 'PodDisruptionBudget', 'StatefulSet'],
  );
  const [servers, , budget, set] = manifests;
  t.is(servers?.metadata.name, set?.spec.serviceName);
  t.is(servers?.spec.clusterIP, 'None');
  t.is(budget?.spec.maxUnavailable, 1);
});

test('a server takes the variables of the manifests, has the ports of its probes, and the time to hand over', (t) => {
  const set = manifests[3]?.spec;
  const pod = set?.template?.spec;
  const container = pod?.containers[0];
  if (set === undefined || pod === undefined || container === undefined) throw new Error('no StatefulSet');
  t.true(pod.terminationGracePeriodSeconds * 1000 > STOP_MS_MOST);
  const variables = Object.fromEntries(container.env.map(({ name, value = 'farkv-0' }) => [name, value]));
  // The secrets are not here: tokens stand for them.
  const { FARKV_SECRETS: _, ...env } = variables;
  const tokens = { FARKV_TOKEN: 'a', FARKV_PEER_TOKEN: 'b' };
  const settings = loadSettings({}, { env: { ...env, ...tokens }, dashes: true, hasVerbs: false });
  t.is(settings.id, 'farkv-0');
  t.is(settings.peers.length, set.replicas ?? 0);
  t.deepEqual(settings.fabricListen, [{ host: '0.0.0.0', port: 8400 }], 'the first data port, which the chart lists');
  t.deepEqual(
    manifests[0]?.spec.ports?.map(({ name, port }) => [name, port]),
    [
      ['peer', 9400],
      ['http', 9100],
    ],
    'Prometheus finds each server by the headless Service',
  );
  const portOf = (name: string): string => String(container.ports.find((port) => port.name === name)?.containerPort);
  for (const [name, variable] of [
    ['control', 'FARKV_LISTEN'],
    ['peer', 'FARKV_PEER_LISTEN'],
    ['http', 'FARKV_HTTP_LISTEN'],
  ] as const)
    t.true(env[variable]?.endsWith(`:${portOf(name)}`), name);
  const { startupProbe, livenessProbe, readinessProbe } = container;
  t.deepEqual(
    [startupProbe, livenessProbe, readinessProbe].map(({ httpGet }) => [httpGet.path, httpGet.port]),
    [
      ['/healthz', 'http'],
      ['/healthz', 'http'],
      ['/readyz', 'http'],
    ],
  );
});

test("systemd's unit gives a server the time to hand over, and does not start one again that was removed", (t) => {
  const unit = readFileSync(inRepository('deploy/systemd/farkv.service'), 'utf8');
  const [, seconds] = /^TimeoutStopSec=(\d+)$/m.exec(unit) ?? [];
  t.true(Number(seconds) * 1000 > STOP_MS_MOST, unit);
  t.true(unit.includes(`\nRestartPreventExitStatus=${EXIT.removed}\n`), unit);
});
