/** `farkv doctor`: would `--transport verbs` work here, and if not, what mends it. */
import type { CommandModule } from 'yargs';
import { FarkvError } from '../../../core/errors.js';
import { visibleJson } from '../../../core/visible-text.js';
import { parseSize } from '../../../core/size.js';
import { print } from '../output.js';

interface DoctorArguments {
  readonly json: boolean;
  readonly memory: string;
}

function sizeOf(text: string): number {
  try {
    return parseSize(text);
  } catch (cause) {
    throw new FarkvError('ERR_CONFIG', `--memory: ${(cause as Error).message}`, { cause });
  }
}

export const doctorCommand: CommandModule<object, DoctorArguments> = {
  command: 'doctor',
  describe: 'Examine this host for RDMA: libraries, devices, GIDs, limits; and print a fix for each problem',
  builder: (y) =>
    y
      .option('json', { type: 'boolean', default: false, describe: 'Print the whole report as JSON' })
      .option('memory', {
        type: 'string',
        requiresArg: true,
        default: '1gb',
        describe: 'Memory that a server here would register: its --memory',
      })
      .epilogue('Exit code: 0 when --transport verbs would work, 1 when it would not.')
      .example('$0 doctor', 'a report to read')
      .example('$0 doctor --json | jq .problems', 'what is wrong, for a script'),
  handler: async (args) => {
    const { examineHost, renderReport } = await import('../../doctor/index.js');
    const report = examineHost(sizeOf(args.memory));
    print(args.json ? `${visibleJson(report, 2)}\n` : renderReport(report));
    process.exitCode = report.ok ? 0 : 1;
  },
};
