import type { Command } from 'commander'
import { openClient } from '../../client/client.ts'
import { findJob } from '../../jobs/find.ts'
import { followJob } from '../../jobs/follow.ts'
import { lineText } from '../../jobs/log-line.ts'
import { type LogLine, logsOf, openLogReader } from '../../jobs/log-reader.ts'
import { interruptible } from '../../terminal/interruption.ts'
import { type CommonOptions, withDataDir, withExamples } from '../../terminal/options.ts'
import type { Terminal } from '../../terminal/terminal.ts'

interface Options extends CommonOptions {
  follow?: boolean
}

/** `infer job logs <id>`: prints the log of a job. */
export function define(command: Command, terminal: Terminal): void {
  const logs = withDataDir(command.command('logs'))
    .summary('print the log of a job')
    .description(
      'Prints the log of all attempts of a job, oldest line first. With --follow also prints new lines until the job ends.',
    )
    .argument('<id>', 'the job, or the end of its id')
    .option('-f, --follow', 'print new lines until the job has ended')
    .option('--json', 'print one JSON object per line')
    .action((text: string, { follow, json, dataDir }: Options) =>
      interruptible(terminal, async signal => {
        const connect = () => openClient(dataDir)
        const client = connect()
        const id = await findJob(client, text, signal)
        const print = (line: LogLine) => terminal.print(json ? JSON.stringify(line) : lineText(line, terminal.paint))
        if (follow) {
          await using reader = openLogReader(connect, id, signal, print)
          await followJob(connect, id, { signal, onChange: reader.readNow })
          return
        }
        const lines = await logsOf(client, id, signal)
        for (const line of lines) print(line)
        if (lines.length === 0 && !json) terminal.remark('The log is empty.')
      }),
    )
  withExamples(logs, [
    ['infer job logs 7QK2M9XD', 'by the end of its id'],
    ['infer job logs job_… -f', 'until it has ended'],
  ])
}
