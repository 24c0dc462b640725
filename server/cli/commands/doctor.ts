/** `farkv doctor`: would `--transport verbs` work here, and if not, what mends it. */
import type { CommandModule } from 'yargs';
import { examineHost, renderReport } from '../../doctor/index.js';

interface DoctorArguments {
  readonly json: boolean;
  readonly 'memory-bytes': number;
}

export const doctorCommand: CommandModule<object, DoctorArguments> = {
  command: 'doctor',
  describe: 'Examine this host for RDMA: libraries, devices, GIDs, limits; and say what mends each problem',
  builder: (y) =>
    y
      .option('json', { type: 'boolean', default: false, describe: 'Print the whole report as JSON' })
      .option('memory-bytes', { type: 'number', default: 2 ** 30, describe: 'Memory that a server here would register' })
      .epilogue('Exit code: 0 when --transport verbs would work, 1 when it would not.')
      .example('$0 doctor', 'a report to read')
      .example('$0 doctor --json | jq .problems', 'what is wrong, for a script'),
  handler: (args) => {
    const report = examineHost(args['memory-bytes']);
    process.stdout.write(args.json ? `${JSON.stringify(report, undefined, 2)}\n` : renderReport(report));
    process.exitCode = report.ok ? 0 : 1;
  },
};
