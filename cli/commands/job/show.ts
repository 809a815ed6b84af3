import type { Command } from 'commander'
import { openClient } from '../../client/client.ts'
import { factLines, factsOf, section, valueWidth } from '../../jobs/draw.ts'
import { findJob } from '../../jobs/find.ts'
import { filesOfJob, Job, jobPath } from '../../jobs/job.ts'
import { type CommonOptions, withCommon, withExamples } from '../../terminal/options.ts'
import { printable } from '../../terminal/paint.ts'
import type { Terminal } from '../../terminal/terminal.ts'

/** `infer job show <id>`: shows one job. */
export function define(command: Command, terminal: Terminal): void {
  const show = withCommon(command.command('show'))
    .summary('show one job with its inputs and its result')
    .description('Shows one job: its state, its inputs, and its result or error.')
    .argument('<id>', 'the job, or the end of its id')
    .action(async (text: string, { dataDir, json }: CommonOptions) => {
      const client = openClient(dataDir)
      const id = await findJob(client, text)
      const job = await client.ask({ method: 'GET', path: jobPath(id), answer: Job })
      if (json) return terminal.json(job)
      const width = valueWidth(terminal)
      const { paint } = terminal
      // URLs are never cut, so that they can be copied.
      const { files } = filesOfJob(job)
      const {
        images: _,
        video: __,
        thumbnail_url: ___,
        audio_url: ____,
        data: _____,
        ...result
      } = (job.result ?? {}) as Record<string, unknown>
      const made =
        files.length === 0 ? [] : ['', paint.strong('files'), ...files.map(({ url }) => `  ${printable(url)}`)]
      const facts = factLines(factsOf(job, paint), paint)
      const inputs = section('inputs', job.inputs, width, paint)
      const values = section('result', files.length === 0 ? job.result : result, width, paint)
      terminal.print([...facts, ...inputs, ...values, ...made].join('\n'))
    })
  withExamples(show, [
    ['infer job show 7QK2M9XD', 'by the end of its id'],
    ['infer job show job_… --json', 'the record of the API'],
  ])
}
