/**
 * msgpackr, for all that encode with it. The build writes msgpackr's own code into this module's file
 * (scripts/bundle.mjs), so whoever installs farkv installs no msgpackr: its optional package msgpackr-extract has an
 * installation script, which package managers ask about or end with an error for.
 */
export { addExtension, Packr, type Options } from 'msgpackr';
