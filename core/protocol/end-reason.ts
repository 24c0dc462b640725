/**
 * Why a worker ended a client's connection to it: fkv_end in native/wire/wire.h, by name. The server's log has it, and
 * the client is told when it connects again.
 */
const texts = {
  quota: 'more than twice as many requests as --client-quota allows were at the worker',
  stall: 'the client took no replies for 5 seconds: its event loop was held, or its host stood still',
  malformed: 'the client sent a message that is no request',
  surplus: 'the client had more than four connections to the worker, and the oldest gave way',
  ticket: "the client's ticket had expired or was revoked",
} as const;

export type EndReason = keyof typeof texts;

/** For a person. */
export function endText(why: EndReason): string {
  return texts[why];
}
