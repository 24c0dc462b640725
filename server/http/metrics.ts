/** /metrics: the rows of metric-table.ts, and those of the process, as Prometheus reads them. */
import { collectDefaultMetrics, Counter, Gauge, Registry } from 'prom-client';
import type { ClusterStatus } from '../status.js';
import { METRICS, seenIn } from './metric-table.js';

export class Metrics {
  readonly contentType: string;
  readonly #registry = new Registry();
  readonly #rows = METRICS.map((row) => {
    const options = { name: row.name, help: row.help, labelNames: [...row.labels], registers: [this.#registry] };
    const metric = row.type === 'counter' ? new Counter(options) : new Gauge(options);
    return { row, metric };
  });

  constructor() {
    this.contentType = this.#registry.contentType;
    collectDefaultMetrics({ register: this.#registry });
  }

  /** `status` is the server's own. */
  async text(status: ClusterStatus, id: string, listeners: number): Promise<string> {
    const seen = seenIn(status, id, listeners);
    for (const { row, metric } of this.#rows) {
      // Counters count elsewhere: here they are set to what was counted.
      metric.reset();
      for (const { labels = {}, value } of seen === undefined ? [] : row.read(seen)) metric.inc(labels, value);
    }
    return await this.#registry.metrics();
  }
}
