/**
 * /metrics and the alert rules under the real Prometheus and its promtool (apt-get install prometheus). Without them these
 * tests are skipped.
 */
import test, { type ExecutionContext } from 'ava';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect } from '../../client/index.js';
import { inRepository } from '../../bench/repository.js';
import { Cluster, freePorts } from '../support/cluster.js';
import { ask } from '../support/http.js';
import { madeSecrets } from '../support/made-secrets.js';

const isThere = (program: string): boolean => spawnSync(program, ['--version']).error === undefined;
const where = 'apt-get install prometheus';
const withPromtool = isThere('promtool') ? test : test.skip;
const withPrometheus = isThere('prometheus') ? test : test.skip;
const RULES = inRepository('docs/dashboards/alerts.yml');
const HTTP = ['--http-listen', '127.0.0.1:0'];

withPromtool(`promtool takes the alert rules, and what /metrics says (${where})`, async (t) => {
  const rules = spawnSync('promtool', ['check', 'rules', RULES], { encoding: 'utf8' });
  t.is(rules.status, 0, rules.stdout + rules.stderr);
  t.regex(rules.stdout, /SUCCESS: \d+ rules found/);
  const cluster = await Cluster.start(t, { servers: 1, args: HTTP });
  const client = await connect(cluster.addresses);
  t.teardown(() => client.close());
  await client.put('a key', 'a value');
  const { text } = await ask(cluster.server(0).readyLine?.http[0] ?? '', '/metrics');
  t.regex(text, /^# TYPE nodejs_active_handles gauge$/m);
  const metrics = spawnSync('promtool', ['check', 'metrics'], { input: text, encoding: 'utf8' });
  t.is(metrics.status, 0, metrics.stdout + metrics.stderr);
});

/** What its API answers; undefined while it does not. */
async function query(at: string, path: string): Promise<unknown> {
  try {
    return (JSON.parse((await ask(at, path)).text) as { readonly data?: unknown }).data;
  } catch {
    return undefined;
  }
}

/** The job of servers without secrets. JSON is YAML. */
const openJob = (targets: readonly string[]): string =>
  `scrape_configs: ${JSON.stringify([{ job_name: 'farkv', static_configs: [{ targets }] }])}\n`;

/** The job of docs/monitoring.md, for these servers and with the files of this directory. */
function documentedJob(t: ExecutionContext, targets: readonly string[], secrets: string): string {
  const document = readFileSync(inRepository('docs/monitoring.md'), 'utf8');
  let job = /^```yaml\n(scrape_configs:\n[^`]+)^```$/m.exec(document)?.[1] ?? '';
  for (const [of, here] of [
    [/\/etc\/farkv\/secrets/g, secrets],
    [/(?<=targets: )\[[^\]]*\]/, JSON.stringify(targets)],
    [/(?<=scrape_interval: )15s/, '1s'],
  ] as const) {
    t.regex(job, of);
    job = job.replace(of, here);
  }
  return job;
}

/** With the alert rules; `job`: the text of its scrape_configs. Where its API answers. */
async function startPrometheus(t: ExecutionContext, job: string): Promise<string> {
  const directory = mkdtempSync(join(tmpdir(), 'farkv-prometheus-'));
  const config = join(directory, 'prometheus.yml');
  const rest = { global: { scrape_interval: '1s', evaluation_interval: '1s' }, rule_files: [RULES] };
  const parts = Object.entries(rest).map(([name, value]) => `${name}: ${JSON.stringify(value)}\n`);
  writeFileSync(config, parts.join('') + job);
  const [port = 0] = await freePorts(1);
  const at = `127.0.0.1:${port}`;
  const child = spawn(
    'prometheus',
    [
      `--config.file=${config}`,
      `--storage.tsdb.path=${join(directory, 'data')}`,
      `--web.listen-address=${at}`,
      '--log.level=warn',
    ],
    { stdio: ['ignore', 'ignore', 'inherit'] },
  );
  t.teardown(async () => {
    child.kill();
    if (child.exitCode === null) await once(child, 'exit');
    rmSync(directory, { recursive: true, force: true });
  });
  return at;
}

withPromtool(`alerts fire for what they are there for, and for nothing else (${where})`, (t) => {
  const tested = spawnSync('promtool', ['test', 'rules', inRepository('test/fixtures/alerts.yml')], {
    encoding: 'utf8',
  });
  t.is(tested.status, 0, tested.stdout + tested.stderr);
});

interface Target {
  readonly health: string;
  readonly lastError: string;
}
interface Alert {
  readonly state: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

/** Waits until Prometheus has read so many targets. What it could not read ends the wait. */
async function allUp(t: ExecutionContext, at: string, count: number): Promise<void> {
  const targets = async (): Promise<readonly Target[]> => {
    const data = (await query(at, '/api/v1/targets')) as { readonly activeTargets?: readonly Target[] } | undefined;
    return data?.activeTargets ?? [];
  };
  let seen: readonly Target[] = [];
  while (seen.filter(({ health }) => health === 'up').length < count) {
    t.deepEqual(
      seen.map(({ lastError }) => lastError).filter((error) => error !== ''),
      [],
      'what it reads is whole',
    );
    await sleep(100);
    seen = await targets();
  }
}

async function instant(at: string, expression: string): Promise<string | undefined> {
  const answer = (await query(at, `/api/v1/query?query=${encodeURIComponent(expression)}`)) as {
    readonly result: readonly { readonly value: readonly [number, string] }[];
  };
  return answer.result[0]?.value[1];
}

withPrometheus(
  `the scrape job of docs/monitoring.md reads servers with the files of farkv secrets init (${where})`,
  async (t) => {
    const ids = ['s1', 's2', 's3'].flatMap((id) => ['--server', id]);
    // The certificates do not name the address that is read, as where they were made on another machine.
    const secrets = await madeSecrets(t, '--host', 'localhost', ...ids);
    const cluster = await Cluster.start(t, { servers: 3, args: [...HTTP, '--secrets', secrets] });
    const addresses = [0, 1, 2].map((i) => cluster.server(i).readyLine?.http[0] ?? '');
    const at = await startPrometheus(t, documentedJob(t, addresses, secrets));
    await allUp(t, at, 3);
    t.is(await instant(at, 'count(farkv_build_info{job="farkv"})'), '3');
    t.is(await instant(at, 'sum(farkv_raft_is_leader{job="farkv"})'), '1');
  },
);

withPrometheus(
  `a real Prometheus scrapes three servers, and an alert fires when one is killed (${where})`,
  async (t) => {
    const cluster = await Cluster.start(t, { servers: 3, shards: 6, args: HTTP });
    const client = await connect({ servers: cluster.addresses, timeoutMs: 240_000 });
    t.teardown(() => client.close());
    await client.put('a key', 'a value');
    const addresses = [0, 1, 2].map((i) => cluster.server(i).readyLine?.http[0] ?? '');
    const at = await startPrometheus(t, openJob(addresses));
    await allUp(t, at, 3);
    const firing = async (): Promise<readonly Alert[]> => {
      const data = (await query(at, '/api/v1/alerts')) as { readonly alerts?: readonly Alert[] } | undefined;
      return (data?.alerts ?? []).filter(({ state }) => state === 'firing');
    };
    t.deepEqual(await firing(), []);
    t.is(await instant(at, 'sum(farkv_ops_total{op="put",code="ok"})'), '1');
    await cluster.server(2).kill();
    let alert: Alert | undefined;
    while (alert === undefined) {
      await sleep(100);
      alert = (await firing()).find(({ labels }) => labels.alertname === 'FarkvServerSilent');
    }
    t.is(alert.labels.peer, 's3');
    t.is(alert.annotations.command, 'farkv status; start s3 again, with its --data-dir');
  },
);
