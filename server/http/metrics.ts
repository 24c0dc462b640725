/** /metrics: the rows of metric-table.ts, and those of the process, as Prometheus reads them. */
import { collectDefaultMetrics, Registry } from 'prom-client';
import { exposition, OPENMETRICS_TYPE, TEXT_TYPE } from '../../core/exposition.js';
import { seenIn } from './metric-row.js';
import { METRICS } from './metric-table.js';
import type { ScrapeStatus } from './scrape-status.js';

/** Whether who sent this header reads OpenMetrics rather than text; Prometheus does. */
export function wantsOpenMetrics(accept: string | undefined): boolean {
  return (accept ?? '')
    .toLowerCase()
    .split(',')
    .some((one) => /^\s*application\/openmetrics-text\s*(;|$)/.test(one) && !/;\s*q\s*=\s*0(\.0*)?\s*(;|$)/.test(one));
}

/** A gauge is not to end with _total; the labels of the gauge beside each of these have the same counts. */
const MISNAMED = ['nodejs_active_resources_total', 'nodejs_active_handles_total', 'nodejs_active_requests_total'];

function collectOfProcess(register: Registry): void {
  collectDefaultMetrics({ register });
  for (const name of MISNAMED) register.removeSingleMetric(name);
}

export class Metrics {
  readonly #text = new Registry();
  /** Made when somebody asks for it first. Its registry is another: prom-client renames counters in one of these. */
  #open: Registry | undefined;

  constructor() {
    collectOfProcess(this.#text);
  }

  contentType(isOpen: boolean): string {
    return isOpen ? OPENMETRICS_TYPE : TEXT_TYPE;
  }

  /** `status` is the server's own. */
  async text(status: ScrapeStatus, id: string, listeners: number, isOpen = false): Promise<string> {
    const seen = seenIn(status, id, listeners);
    const families = METRICS.map(({ read, ...row }) => ({ ...row, samples: seen === undefined ? [] : read(seen) }));
    return exposition(families, isOpen) + (await this.#ofProcess(isOpen).metrics());
  }

  #ofProcess(isOpen: boolean): Registry {
    if (!isOpen) return this.#text;
    if (this.#open === undefined) {
      this.#open = new Registry();
      // Its type names one content type; the registry takes both.
      (this.#open as Registry & { setContentType: (type: string) => void }).setContentType(OPENMETRICS_TYPE);
      collectOfProcess(this.#open);
    }
    return this.#open;
  }
}
