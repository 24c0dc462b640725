/** A thread that asks for a server's metrics when it is told to, as Prometheus does; its data is their address. */
import { parentPort, workerData } from 'node:worker_threads';

const url = String(workerData);
const headers = { accept: 'application/openmetrics-text; version=1.0.0' };

async function scrape(): Promise<void> {
  const answer = await fetch(url, { headers });
  const text = await answer.text();
  if (!answer.ok || !text.endsWith('# EOF\n')) throw new Error(`${url} answered ${answer.status}: ${text}`);
  parentPort?.postMessage('scraped');
}

parentPort?.on('message', () => void scrape());
