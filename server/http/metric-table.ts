/**
 * The metrics of farkv, one row each: name, meaning, labels, and where its values come from. All are those of the server
 * that is asked; its own status is all that they are made from. docs/metrics.md lists them.
 *
 * Names end with their unit; counters end with _total and count since the server's start.
 */
import type { Metric } from './metric-row.js';
import { OF_CLUSTER } from './metrics-of-cluster.js';
import { OF_DATA } from './metrics-of-data.js';
import { OF_SHARDS } from './metrics-of-shards.js';

export const METRICS: readonly Metric[] = [...OF_CLUSTER, ...OF_SHARDS, ...OF_DATA];
