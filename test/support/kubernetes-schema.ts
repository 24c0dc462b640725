/**
 * Whether manifests are what the API of Kubernetes takes, by the package kubernetes-models, which is made from the API's
 * own description. Its validators let a field pass that the API does not have, and its types do not: so both are used.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import ts from 'typescript';

export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string };
}
type Model = new (manifest: Manifest) => { validate(): void };

/** The module of kubernetes-models that has a kind: `apps/v1`, `v1`. */
const moduleOf = ({ apiVersion }: Manifest): string => `kubernetes-models/${apiVersion}`;

/** What TypeScript says of the manifests, each of which is written as a literal of its kind's type. */
function typeErrors(directory: string, manifests: readonly Manifest[]): string[] {
  const file = join(directory, 'manifests.mts');
  const lines = manifests.flatMap((manifest, i) => [
    `import type { I${manifest.kind} as Kind${i} } from '${moduleOf(manifest)}';`,
    `export const manifest${i}: Kind${i} = ${JSON.stringify(manifest)};`,
  ]);
  writeFileSync(file, lines.join('\n'));
  const program = ts.createProgram([file], {
    module: ts.ModuleKind.NodeNext,
    moduleResolution: ts.ModuleResolutionKind.NodeNext,
    target: ts.ScriptTarget.ES2023,
    strict: true,
    noEmit: true,
    skipLibCheck: true,
    types: [],
  });
  return ts.getPreEmitDiagnostics(program).map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n'));
}

async function valueErrors(directory: string, manifest: Manifest): Promise<string[]> {
  const path = join(directory, 'node_modules', moduleOf(manifest), 'index.js');
  const { [manifest.kind]: Kind } = (await import(pathToFileURL(path).href)) as Readonly<Record<string, Model>>;
  if (Kind === undefined) return [`${moduleOf(manifest)} has no ${manifest.kind}`];
  try {
    new Kind(manifest).validate();
    return [];
  } catch (error) {
    return [`${manifest.kind} ${manifest.metadata.name}: ${String(error)}`];
  }
}

/** What is wrong with them, in words; `directory`: one that has kubernetes-models in its node_modules, for files too. */
export async function schemaErrors(directory: string, manifests: readonly Manifest[]): Promise<string[]> {
  const ofValues = await Promise.all(manifests.map((manifest) => valueErrors(directory, manifest)));
  return [...ofValues.flat(), ...typeErrors(directory, manifests)];
}
