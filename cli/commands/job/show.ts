import type { Command } from 'commander'
import { dataDirectory } from '../../../core/config.ts'
import { openClient } from '../../client/client.ts'
import { drawRows } from '../../help/manual.ts'
import { factsOf, valueRows } from '../../jobs/draw.ts'
import { findIds } from '../../jobs/find.ts'
import { filesOfJob, Job, jobPath } from '../../jobs/job.ts'
import { withDataDir, withExamples, withJson } from '../../terminal/options.ts'
import { printable } from '../../terminal/paint.ts'
import type { Terminal } from '../../terminal/terminal.ts'

/** `infer job show <id>`: shows one job. */
export function define(command: Command, terminal: Terminal): void {
  const show = withDataDir(withJson(command.command('show')))
    .summary('show one job with its inputs and its result')
    .description('Shows one job: its state, its inputs, and its result or error.')
    .argument('<id>', 'the job, or the end of its id')
    .action(async (text: string, { dataDir, json }: { dataDir?: string; json?: boolean }) => {
      const client = openClient(dataDirectory(dataDir))
      const [id] = await findIds(client, [text])
      const job = await client.ask({ method: 'GET', path: jobPath(id!), answer: Job })
      if (json) return terminal.json(job)
      const width = terminal.isTerminal ? Math.max(40, (terminal.stdout.columns || 80) - 26) : 0
      const { paint } = terminal
      const section = (title: string, value: unknown) => {
        const rows = valueRows(value, width)
        return rows.length === 0 ? [] : ['', paint.strong(title), ...drawRows(rows, Number.MAX_SAFE_INTEGER)]
      }
      const facts = factsOf(job, paint).map(([name, value]) => `${paint.faint(name.padEnd(11))}${value}`)
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
      const values = section('result', files.length === 0 ? job.result : result)
      terminal.print([...facts, ...section('inputs', job.inputs), ...values, ...made].join('\n'))
    })
  withExamples(show, [
    ['infer job show 7QK2M9XD', 'by the end of its id'],
    ['infer job show job_… --json', 'the record of the API'],
  ])
}
