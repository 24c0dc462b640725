/** The transports that any host has: tests of what is so over each of them walk this list. */
import { needsDevice, PROVIDERS, type Provider } from '../../core/providers.js';

export const DEVICELESS: readonly Provider[] = PROVIDERS.filter((provider) => !needsDevice(provider));
