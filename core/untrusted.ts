/** Whether a socket's error says that the other end's certificate is not trusted: a refusal, not an absence. Pure. */
export function isUntrusted(error: unknown): boolean {
  return error instanceof Error && 'code' in error && /^(CERT_|ERR_TLS_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_)/.test(String(error.code));
}
