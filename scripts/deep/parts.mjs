// The parts of npm run deep: what .ci/run leaves out because it is long, random, timed, or needs what few machines have.
//
// A part has { about, steps }; steps({ minutes, seed, again, files, folder }) returns its steps in their order:
//   minutes   how long each random step shall run; seed()  draws a fresh seed
//   files     with --changed: the files that changed
//   folder    where results lie
// A step has { name, command, env?, seed?, minutes?, needs?, leftOut?, known? }:
//   seed      recorded; the command or `env` has it, too
//   needs     see needs.mjs
//   leftOut   a line of its output by which a step that passed says that it could not run
//   known     what an open seed finds: then a failure is expected
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { missingFor, TARGETS } from '../addons.mjs';
import { debian, fuzzer, namespaces, rdmaHeaders, rootOnDebian, tool } from './needs.mjs';
import { randomAvaFiles, randomPrograms } from './random-tests.mjs';

const root = join(import.meta.dirname, '../..');

/** What runs before the first step. */
export const PREPARE = ['node', 'scripts/setup.mjs'];

const npm = (script, ...args) => [
  'npm',
  'run',
  '-s',
  script,
  ...(args.length === 0 ? [] : ['--', ...args.map(String)]),
];
const make = (...args) => ['make', '-s', '-j2', '-C', 'native', ...args];
const redis = tool('redis-server');
/** The packages of the virtual machine, by the script that installs them. */
function virtualMachine() {
  const script = readFileSync(join(root, 'test/rdma/vm/prepare.sh'), 'utf8');
  return debian(...(/^packages=\(([^)]*)\)/m.exec(script)?.[1].split(/\s+/) ?? []))();
}
/** What the addon for a target is compiled with. */
const addonFor = (target) => () => {
  const text = missingFor(target);
  return text === undefined ? undefined : { text };
};
const inDebianRoot = [rootOnDebian, namespaces, tool('mmdebstrap'), rdmaHeaders];

/** Steps of each simulated history; those of copies are the most work. */
const STEPS = { hashes: 20_000, metadata: 20_000, owners: 20_000, copies: 20_000, replicas: 10_000 };

function openSeeds() {
  const { simulator, c } = JSON.parse(readFileSync(join(root, 'test/open-seeds.json'), 'utf8'));
  return [
    ...simulator.map(({ application, seed, steps, found }) => ({
      name: `open seed: ${application} ${seed}`,
      seed,
      command: npm('sim', '--seed', seed, '--steps', steps, '--application', application),
      known: found,
    })),
    ...c.map(({ program, seed, found }) => ({
      name: `open seed: ${program} ${seed}`,
      seed,
      command: make(`ONLY=${program}`, 'test'),
      env: { FARKV_SEED: String(seed) },
      known: found,
    })),
  ];
}

function freshSeeds({ minutes, seed }) {
  const simulators = Object.entries(STEPS).map(([application, steps]) => {
    const from = seed();
    const args = ['--seconds', Math.ceil(60 * minutes), '--from', from, '--steps', steps, '--application', application];
    return { name: `simulator: ${application}`, command: npm('sim', ...args), seed: from, minutes };
  });
  const only = `ONLY=${randomPrograms(root).join(' ')}`;
  const { alone, beside } = randomAvaFiles(root);
  const ava = (files) => ['node', 'scripts/rerun-files.mjs', ...files];
  const tests = [
    { name: 'C tests, short', command: make(only, 'test-short') },
    { name: 'C tests, long', command: make(only, 'test-long') },
    { name: 'AVA tests', command: ava(alone) },
    { name: 'AVA tests beside Redis', command: ava(beside), needs: [redis] },
  ].map((step) => {
    const drawn = seed();
    return { ...step, seed: drawn, env: { FARKV_SEED: String(drawn) } };
  });
  return [...simulators, ...tests];
}

export const PARTS = {
  long: {
    about: 'files *.long.test.ts, and C programs marked LONG; half an hour',
    steps: () => [
      {
        name: 'long tests',
        command: npm('test:all', '--rest'),
        needs: [
          redis,
          ...['chromium', 'prometheus', 'fish', 'zsh'].map((name) => tool(name)),
          tool('promtool', 'prometheus'),
        ],
      },
      // Of them, since these say what they lack.
      { name: 'chart', command: ['npx', 'ava', 'dist/test/chart.long.test.js'], leftOut: /^\s*ℹ left out: (.*)$/m },
    ],
  },
  seeds: {
    about: 'open seeds, then fresh ones: five simulators (--minutes each), random C and AVA tests',
    steps: (options) => [...openSeeds(), ...freshSeeds(options)],
  },
  fuzz: {
    about: 'hostile frames, by coverage (--minutes in all)',
    steps({ minutes, seed }) {
      const drawn = seed();
      const args = ['--seconds', Math.ceil(60 * minutes), '--seed', drawn, '--coverage'];
      return [{ name: 'all targets', command: npm('fuzz', ...args), seed: drawn, minutes, needs: [fuzzer] }];
    },
  },
  campaign: {
    about: 'kills of servers with copies and with durable values, until there were 50 and 20 at this commit',
    steps({ again, seed, folder }) {
      // A campaign counts the kills that were made at a commit before; in a folder of its own it begins anew.
      const anew = again ? ['--directory', join(folder, `campaign-${seed()}`)] : [];
      return [
        { name: 'copies', command: npm('campaign', '--kills', 50, '--at-once', 2, ...anew) },
        { name: 'durable', command: npm('campaign', '--level', 'durable', '--kills', 20, '--at-once', 2, ...anew) },
      ];
    },
  },
  mutations: {
    about:
      'each safety mechanism taken out; a named test must fail; 20 minutes, with --changed only rows of those files',
    steps: ({ files }) => [
      files === undefined
        ? { name: 'all rows', command: npm('mutations') }
        : { name: 'rows of changed files', command: npm('mutations', '--files', files.join(',')) },
    ],
  },
  sanitizers: {
    about: 'all C tests under the thread sanitizer, and under address and undefined behaviour; the addon',
    steps: () => [
      { name: 'thread', command: make('test', 'SAN=thread') },
      { name: 'address,undefined', command: make('test', 'SAN=address,undefined') },
      { name: 'addon', command: ['bash', 'scripts/sanitize-addon.sh'] },
    ],
  },
  instructions: {
    about: 'instruction counts of the native hot paths, against those that are kept; half a minute',
    steps: () => [{ name: 'hot paths', command: npm('bench:instructions'), needs: [tool('valgrind')] }],
  },
  rdma: {
    about: 'verbs over soft-RoCE and soft-iWARP, in a virtual machine; half an hour',
    steps: () => [{ name: 'virtual machine', command: npm('test:rdma'), needs: [rootOnDebian, virtualMachine] }],
  },
  power: {
    about: 'durable servers lose their power, in a virtual machine; 31 cuts',
    steps: () => [
      { name: 'virtual machine', command: npm('test:power'), needs: [rootOnDebian, virtualMachine, debian('nbdkit')] },
    ],
  },
  package: {
    about: 'the npm package, also on arm64, the one-file executable, the Debian package and its service, the image',
    steps: () => [
      {
        name: 'npm, other managers, arm64',
        command: ['bash', 'scripts/check-package.sh', '--all'],
        needs: [
          rdmaHeaders,
          tool('qemu-aarch64', 'qemu-user libstdc++6-arm64-cross'),
          tool('aarch64-linux-gnu-gcc', 'gcc-aarch64-linux-gnu libc6-dev-arm64-cross'),
          ...TARGETS.map(addonFor),
        ],
        leftOut: /^left out: (arm64.*)$/m,
      },
      {
        name: 'executable',
        command: ['bash', 'scripts/check-binary.sh'],
        needs: inDebianRoot,
        leftOut: /^left out: (arm64.*)$/m,
      },
      {
        name: 'Debian package',
        command: ['bash', 'scripts/check-deb.sh'],
        needs: [...inDebianRoot, tool('python3'), tool('lintian'), tool('systemd-analyze', 'systemd')],
        leftOut: /^left out: (arm64.*)$/m,
      },
      {
        name: 'service under systemd',
        command: ['bash', 'scripts/check-unit.sh'],
        needs: [...inDebianRoot, virtualMachine],
      },
      {
        name: 'image',
        command: ['bash', 'scripts/check-image.sh'],
        needs: [rootOnDebian, namespaces, rdmaHeaders, tool('buildah')],
      },
    ],
  },
};
