/** farkv/opentelemetry with OpenTelemetry's own SDK, of calls to a real server. */
import test from 'ava';
import * as api from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base';
import { traceCalls } from '../../adapters/opentelemetry.js';
import { oneServer } from '../support/adapters.js';

const server = oneServer(test);
const exporter = new InMemorySpanExporter();
api.trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }));
api.context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());

test.serial('a call is a span of the context in which it was made, until that is ended', async (t) => {
  const kv = server().space();
  const stop = traceCalls(api);
  const parent = api.trace.getTracer('test').startSpan('parent');
  await api.context.with(api.trace.setSpan(api.context.active(), parent), async () => {
    await kv.put('a', '1');
    await kv.getMany(['a', 'b', 'c']);
    kv.getSync('a');
    await t.throwsAsync(kv.append('a', Buffer.alloc(8000), { timeoutMs: 60_000, signal: AbortSignal.abort() }));
    await kv.put('b', 'text');
    await t.throwsAsync(kv.increment('b'), { code: 'ERR_NOT_INTEGER' });
  });
  stop();
  await kv.put('a', '2');
  const spans = exporter.getFinishedSpans();
  t.deepEqual(
    spans.map(({ name, kind, attributes, status }) => [
      name,
      kind,
      attributes['db.operation.batch.size'],
      attributes['error.type'],
      status.code,
    ]),
    [
      ['put 1', api.SpanKind.CLIENT, undefined, undefined, api.SpanStatusCode.UNSET],
      ['getMany 1', api.SpanKind.CLIENT, 3, undefined, api.SpanStatusCode.UNSET],
      ['getSync 1', api.SpanKind.CLIENT, undefined, undefined, api.SpanStatusCode.UNSET],
      ['append 1', api.SpanKind.CLIENT, undefined, 'ERR_ABORTED', api.SpanStatusCode.ERROR],
      ['put 1', api.SpanKind.CLIENT, undefined, undefined, api.SpanStatusCode.UNSET],
      ['increment 1', api.SpanKind.CLIENT, undefined, 'ERR_NOT_INTEGER', api.SpanStatusCode.ERROR],
    ],
  );
  for (const { parentSpanContext, attributes } of spans) {
    t.is(parentSpanContext?.spanId, parent.spanContext().spanId);
    t.is(attributes['db.system.name'], 'farkv');
    t.is(attributes['db.response.status_code'], attributes['error.type']);
    t.false(JSON.stringify(attributes).includes('text'));
  }
});
