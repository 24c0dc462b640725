/** The targets that fuzz the control plane. */
import { client } from './client.js';
import { control } from './control.js';
import { frames } from './frames.js';
import { metadata } from './metadata.js';
import { peers } from './peers.js';
import type { FuzzTarget } from './target.js';

export const TARGETS: readonly FuzzTarget[] = [frames, control, peers, metadata, client];
