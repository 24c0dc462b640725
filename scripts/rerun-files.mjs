// Runs compiled test files, and those that fail once more, alone:  node scripts/rerun-files.mjs FILE...
import process from 'node:process';
import { avaTests, runAgain, sayUnstable } from './rerun.mjs';

const say = (text) => process.stdout.write(`${text}\n`);
const verdict = await avaTests(process.argv.slice(2), say);
const passed = verdict !== 'failed' && (await runAgain(say));
sayUnstable();
process.exit(passed ? 0 : 1);
