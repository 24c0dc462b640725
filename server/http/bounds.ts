/** What browsers and Prometheus may cost a server. docs/monitoring.md names these numbers. */

/** A call that the HTTP port makes of the thread of Raft: this server's own figures, for those who may see them. */
export const OWN_STATUS = 'own-status';
/** And the other one, which costs little: what probes need, for anybody (own-readiness.ts). */
export const OWN_READINESS = 'own-readiness';
/** Connections, from addresses without and with a login before. The oldest of the address with the most gives way. */
export const HTTP_PLACES = { strangers: 64, known: 64 } as const;
/** TLS handshakes that begin per second. */
export const HTTP_HANDSHAKES = {
  strangers: { perSecond: 20, burst: 20 },
  known: { perSecond: 50, burst: 32 },
  turn: 1,
} as const;
/** Of the headers of a request. */
export const HEADER_BYTES = 8 << 10;
/** A request and its answer may each take so long. */
export const REQUEST_MS = 10_000;
/** The pause until the next request of a connection. */
export const PAUSE_MS = 5000;
/** Pages that are open. */
export const LISTENERS = 16;
/** A page that leaves what it was sent unread for so long is cut off. Until then nothing more is sent to it. */
export const UNREAD_MS = 30_000;
/** An answer of the thread of Raft serves all who ask within this time. */
export const FRESH_MS = 100;
/** Without an answer for so long the thread of Raft counts as stuck. */
export const ANSWER_MS = 2000;
/** And the status of the cluster, for which other servers are asked. */
export const STATUS_ANSWER_MS = 5000;
/** While a page is open the cluster is looked at so often. */
export const LOOK_MS = 1000;
/** And while none is, so often, for the charts of pages that are opened later. */
export const SAMPLE_MS = 10_000;
/** An hour of them: about 100 KiB. */
export const SAMPLES = 360;
