// What the package is made of: `sbom.cdx.json` (CycloneDX, as `npm sbom` makes it from the lock file) and
// DEPENDENCIES.md, a list of the same with licences, which is kept in the repository. Run by `npm pack` and
// `npm publish`; `node scripts/sbom.mjs [DIRECTORY]` writes both there.
//
// `npm sbom --omit dev` leaves out what the package shares with its development tools, so those that are for development
// alone are taken out here, by the lock file. It knows nothing of a package whose code the build puts into farkv's own
// files (bundle.mjs): for the lock file that is a development tool.
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import process from 'node:process';

const root = join(import.meta.dirname, '..');
const target = resolve(process.argv[2] ?? root);

function fail(text) {
  process.stderr.write(`sbom: ${text}\n`);
  process.exit(1);
}

const made = spawnSync('npm', ['sbom', '--sbom-format', 'cyclonedx', '--package-lock-only'], {
  cwd: root,
  encoding: 'utf8',
  maxBuffer: 64 << 20,
});
if (made.status !== 0) fail(`npm sbom failed: ${made.stderr}`);
const sbom = JSON.parse(made.stdout);

/** By the path in the lock file. */
const BUNDLED = ['node_modules/msgpackr'];
const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'));
const used = Object.entries(packages)
  .filter(([path, { dev }]) => (path !== '' && dev !== true) || BUNDLED.includes(path))
  .map(([path, { version, license }]) => ({
    name: path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length),
    version,
    license,
    bundled: BUNDLED.includes(path),
  }));
const references = new Set(used.map(({ name, version }) => `${name}@${version}`));

sbom.metadata.component.name = packages[''].name;
sbom.components = sbom.components.filter((one) => references.has(`${one.name}@${one.version}`));
const kept = new Set([sbom.metadata.component['bom-ref'], ...sbom.components.map((one) => one['bom-ref'])]);
sbom.dependencies = sbom.dependencies
  .filter(({ ref }) => kept.has(ref))
  .map(({ ref, dependsOn = [] }) => ({ ref, dependsOn: dependsOn.filter((one) => kept.has(one)) }));
const listed = new Set(sbom.components.map((one) => `${one.name}@${one.version}`));
const missing = [...references].filter((one) => !listed.has(one));
if (missing.length > 0) fail(`npm sbom does not list ${missing.join(', ')}`);
for (const { name, version } of used.filter(({ bundled }) => bundled)) {
  const component = sbom.components.find((one) => one.name === name && one.version === version);
  component.scope = 'required';
  component.properties = [{ name: 'cdx:npm:package:bundled', value: 'true' }];
}

const rows = [...new Map(used.map((one) => [`${one.name}@${one.version}`, one])).entries()]
  .sort(([a], [b]) => (a < b ? -1 : 1))
  .map(
    ([, { name, version, license, bundled }]) => `| ${name} | ${version} | ${license}${bundled ? ' | yes' : ' |'} |`,
  );
const text = `# Dependencies

What an installed farkv is made of beside its own code, as package-lock.json pins it. A bundled package is in farkv's own files, the others are installed with it. Made by \`node scripts/sbom.mjs\`; the package has the same as \`sbom.cdx.json\` (CycloneDX).

| package | version | licence | bundled |
|---|---|---|---|
${rows.join('\n')}
`;
writeFileSync(join(target, 'sbom.cdx.json'), `${JSON.stringify(sbom, undefined, 2)}\n`);
writeFileSync(join(target, 'DEPENDENCIES.md'), text);
