/** The files of the page: they come from this package, and from no other host. */
import { packageFile, dependencyFile } from '../../native/package.js';

export interface Asset {
  readonly type: string;
  readonly body: Buffer;
}

const source = (name: string): Buffer => packageFile(`server/http/page/${name}`);
const compiled = (name: string): Buffer => packageFile(`dist/server/http/page/${name}`);

/** By their paths. Throws when the package lacks one. */
export function readAssets(): ReadonlyMap<string, Asset> {
  const html = 'text/html; charset=utf-8';
  const script = 'text/javascript; charset=utf-8';
  const style = 'text/css; charset=utf-8';
  const files: readonly (readonly [path: string, type: string, body: Buffer])[] = [
    ['/', html, source('page.html')],
    ['/page.css', style, source('page.css')],
    ['/page.js', script, compiled('page.js')],
    ['/elements.js', script, compiled('elements.js')],
    ['/connection.js', script, compiled('connection.js')],
    ['/follow.js', script, compiled('follow.js')],
    ['/figures.js', script, compiled('figures.js')],
    ['/charts.js', script, compiled('charts.js')],
    ['/picture.js', script, compiled('picture.js')],
    ['/shard-table.js', script, compiled('shard-table.js')],
    ['/uplot.js', script, dependencyFile('uplot', 'uPlot.iife.min.js')],
    ['/uplot.css', style, dependencyFile('uplot', 'uPlot.min.css')],
  ];
  return new Map([
    ...files.map(([path, type, body]) => [path, { type, body }] as const),
    // Browsers ask for it by themselves.
    ['/favicon.ico', { type: 'image/x-icon', body: Buffer.alloc(0) }],
  ]);
}
