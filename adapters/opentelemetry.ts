/**
 * `farkv/opentelemetry`: a span for each call of each client in this process.
 *
 *     import * as api from '@opentelemetry/api';
 *     traceCalls(api);
 *
 * The API is given and not imported, so that this package needs none at run time. Names and attributes are those of
 * OpenTelemetry's semantic conventions for database client spans. Keys and values are in none of them.
 */
import type * as OpenTelemetry from '@opentelemetry/api';
import { tracingChannel } from 'node:diagnostics_channel';
import { types } from 'node:util';
import { argumentError, guardedNow, textOfError } from '../client/errors.js';
import type { CallMessage } from '../client/call-channel.js';

/** What is used of `@opentelemetry/api`, from 1.9 on. */
export type Api = Pick<typeof OpenTelemetry, 'trace' | 'SpanKind' | 'SpanStatusCode'>;

const codeOf = (error: unknown): string =>
  types.isNativeError(error) ? ((error as NodeJS.ErrnoException).code ?? error.name) : typeof error;

/**
 * From now on each call that begins is a span, a child of the span in whose context it was made. Answers with what ends
 * that; the spans of calls that are under way end then. A call that is made of others (`update`) has a span beside
 * theirs.
 */
export function traceCalls(api: Api): () => void {
  const { tracer, kinds, codes } = guardedNow(() => ({
    tracer: api.trace.getTracer('farkv'),
    kinds: api.SpanKind,
    codes: api.SpanStatusCode,
  }));
  if (typeof (kinds as unknown) !== 'object' || typeof (codes as unknown) !== 'object')
    throw argumentError("traceCalls takes the whole of @opentelemetry/api: import * as api from '@opentelemetry/api'");
  const spans = new Map<CallMessage, OpenTelemetry.Span>();
  const channel = tracingChannel<unknown, CallMessage>('farkv:call');

  const ended = (message: CallMessage): void => {
    const span = spans.get(message);
    if (span === undefined) return;
    spans.delete(message);
    if ('error' in message) {
      const { error } = message;
      const text = textOfError(error);
      const code = codeOf(error);
      span.setAttributes({ 'error.type': code, 'db.response.status_code': code });
      span.setStatus({ code: codes.ERROR, message: text });
    }
    span.end();
  };

  const subscribers = {
    start(message: CallMessage): void {
      const { call, namespace, keys } = message;
      const attributes = {
        'db.system.name': 'farkv',
        'db.operation.name': call,
        'db.namespace': String(namespace),
        ...(keys === undefined ? {} : { 'db.operation.batch.size': keys }),
      };
      spans.set(message, tracer.startSpan(`${call} ${namespace}`, { kind: kinds.CLIENT, attributes }));
    },
    /** What was answered at once has ended. */
    end(message: CallMessage): void {
      if ('result' in message || 'error' in message) ended(message);
    },
    asyncStart(): void {
      // asyncEnd follows
    },
    asyncEnd: ended,
    error(): void {
      // the end follows
    },
  };
  channel.subscribe(subscribers);
  return () => {
    channel.unsubscribe(subscribers);
    for (const span of spans.values()) span.end();
    spans.clear();
  };
}
