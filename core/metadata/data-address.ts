/**
 * How a server's data port talks over tcp, as its address in the metadata says it:
 *
 *     tls:192.0.2.1:7000     encrypted; native/fabric/tcp/tls.h
 *     clear:192.0.2.1:7000   in the clear, by --insecure-data, though the control port has TLS
 *     192.0.2.1:7000         in the clear, and so is the control port
 *
 * Whoever reaches a cluster by TLS takes the first two only: no port is in the clear because nobody has said how it
 * talks.
 */
const TLS = 'tls:';
const CLEAR = 'clear:';

export const encrypted = (address: string): string => TLS + address;
export const inTheClear = (address: string): string => CLEAR + address;
export const isEncrypted = (address: string): boolean => address.startsWith(TLS);

/** host:port */
export function bare(address: string): string {
  return address.replace(/^(tls|clear):/, '');
}

/** As the native side is to connect to it. undefined: nobody has said that it may be in the clear, and it would be. */
export function addressToUse(address: string, secure: boolean): string | undefined {
  if (address.startsWith(CLEAR)) return bare(address);
  return isEncrypted(address) || !secure ? address : undefined; // mutation: encryption/any-port-in-the-clear
}
