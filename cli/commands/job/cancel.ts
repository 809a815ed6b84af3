import type { Command } from 'commander'
import { openClient } from '../../client/client.ts'
import { findIds } from '../../jobs/find.ts'
import { forEachId } from '../../jobs/for-each-id.ts'
import { Job, jobPath } from '../../jobs/job.ts'
import { type CommonOptions, withCommon, withExamples } from '../../terminal/options.ts'
import type { Terminal } from '../../terminal/terminal.ts'

/** `infer job cancel <ids…>`: cancels pending and running jobs. */
export function define(command: Command, terminal: Terminal): void {
  const cancel = withCommon(command.command('cancel'))
    .summary('cancel pending and running jobs')
    .description(
      'Cancels jobs. A pending job leaves the queue; the engine aborts a running job at once. A job that has ended does not change, and is an error here.',
    )
    .argument('<ids...>', 'the jobs, or the ends of their ids')
    .action(async (texts: string[], { dataDir, json }: CommonOptions) => {
      const client = openClient(dataDir)
      const jobs: Job[] = []
      await forEachId(await findIds(client, texts), terminal, { json }, async id => {
        jobs.push(await client.ask({ method: 'POST', path: `${jobPath(id)}/cancel`, answer: Job }))
        if (!json) terminal.print(`${id} is cancelled.`)
      })
      if (json) terminal.json(texts.length === 1 ? (jobs[0] ?? null) : { jobs })
    })
  withExamples(cancel, [
    ['infer job cancel 7QK2M9XD', 'by the end of its id'],
    ['infer job cancel job_… job_…', 'several at once'],
  ])
}
