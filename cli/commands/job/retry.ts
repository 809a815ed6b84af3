import type { Command } from 'commander'
import { openClient } from '../../client/client.ts'
import { findJob } from '../../jobs/find.ts'
import { jobPath } from '../../jobs/job.ts'
import { Created } from '../../jobs/submit.ts'
import { type CommonOptions, withCommon, withExamples } from '../../terminal/options.ts'
import type { Terminal } from '../../terminal/terminal.ts'

/** `infer job retry <id>`: submits the work of a job again, as a new job. */
export function define(command: Command, terminal: Terminal): void {
  const retry = withCommon(command.command('retry'))
    .summary('submit a job that has ended again')
    .description('Submits a job that has ended again, with the same inputs, and prints the id of the new job.')
    .argument('<id>', 'the job, or the end of its id')
    .action(async (text: string, { dataDir, json }: CommonOptions) => {
      const client = openClient(dataDir)
      const id = await findJob(client, text)
      const created = await client.ask({ method: 'POST', path: `${jobPath(id)}/retry`, answer: Created })
      if (json) return terminal.json(created)
      terminal.print(created.id)
      if (terminal.isTerminal) terminal.remark(`Follow it: infer job watch ${created.id}`)
    })
  withExamples(retry, [
    ['infer job retry 7QK2M9XD', 'by the end of its id'],
    ['infer job watch $(infer job retry job_…)', 'retry it and follow the new job'],
  ])
}
