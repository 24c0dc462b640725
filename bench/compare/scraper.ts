/** A thread that asks for a server's metrics each second, as Prometheus does; its data is the address of the page. */
import { parentPort, workerData } from 'node:worker_threads';

const url = String(workerData);
const EACH_MS = 1000;

const headers = { accept: 'application/openmetrics-text; version=1.0.0' };

async function scrape(): Promise<void> {
  const answer = await fetch(url, { headers });
  const text = await answer.text();
  if (!answer.ok || !text.endsWith('# EOF\n')) throw new Error(`${url} answered ${answer.status}: ${text}`);
}

await scrape();
parentPort?.postMessage('scraped');
setInterval(() => void scrape(), EACH_MS);
