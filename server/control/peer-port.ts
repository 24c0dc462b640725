/** The port between servers: what listens there, and what goes to the metadata group. */
import { FarkvError } from '../../core/errors.js';
import { MEMBERS_MAX } from '../../core/metadata/check-state.js';
import { watchCredentials } from '../audit.js';
import type { ServerSettings } from '../config/settings.js';
import type { Log } from '../log.js';
import type { MetadataGroup } from '../metadata/group.js';
import { RecentAddresses } from './addresses.js';
import { Credentials } from './auth.js';
import { PEER_HANDSHAKES, PEER_PLACES } from './bounds.js';
import { withinDescriptors } from './descriptors.js';
import { Handshakes } from './handshakes.js';
import { Listener } from './listener.js';
import { PeerPlane, type PeerPlaneOptions } from './peer-plane.js';
import { serverTls } from './tls.js';

export interface PeerPortOptions {
  readonly settings: ServerSettings;
  /** Of its data directory. */
  readonly instance: string;
  readonly group: MetadataGroup;
  readonly call: PeerPlaneOptions['call'];
  readonly log: Log;
}

/** Binds its addresses, and answers there. */
export async function openPeerPort({ settings, instance, group, call, log }: PeerPortOptions): Promise<Listener> {
  const { id, access, peerListen, handshakeMs, tls } = settings;
  const { driver, peers } = group;
  const known = new RecentAddresses(MEMBERS_MAX);
  const plane = new PeerPlane({
    known,
    serverId: id,
    instance,
    handshakeMs,
    log,
    credentials: new Credentials(access, watchCredentials(log)),
    state: () => driver.state,
    arrives: (hello) => peers.arrives(hello),
    message: (from, message) => {
      const raftId = peers.raftIdOf(from);
      if (raftId === undefined)
        throw new FarkvError('ERR_UNAUTHORIZED', `${from} is not one of the servers of this cluster`);
      driver.receive(raftId, message);
    },
    call,
  });
  return await Listener.open({
    addresses: peerListen,
    option: '--peer-listen (by default the port of --listen + 2000)',
    tls: tls === undefined ? undefined : serverTls(tls, log),
    places: { ...withinDescriptors(PEER_PLACES), isKnown: (source) => peers.at(source) || known.has(source) },
    handshakes: new Handshakes(PEER_HANDSHAKES),
    handshakeMs,
    connection: (socket, guest) => plane.accept(socket, guest),
  });
}
