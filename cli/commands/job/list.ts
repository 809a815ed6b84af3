import type { Command } from 'commander'
import { InvalidArgumentError, Option } from 'commander'
import { tasks } from '../../../core/schemas/task.ts'
import { jobStatuses } from '../../../core/store/store.ts'
import { openClient } from '../../client/client.ts'
import { jobRows, tableHead } from '../../jobs/draw.ts'
import type { Job } from '../../jobs/job.ts'
import { jobPages } from '../../jobs/job-pages.ts'
import { type CommonOptions, readCount, readSince, withCommon, withExamples } from '../../terminal/options.ts'
import type { Terminal } from '../../terminal/terminal.ts'

interface Options extends CommonOptions {
  status?: string
  task?: string
  model?: string
  since?: number
  limit: number
}

/** Reads a task name, with or without its prefix. */
function readTaskName(text: string): string {
  const task = tasks.find(one => one === text || one.split('/')[1] === text)
  if (!task) throw new InvalidArgumentError(`There is no task '${text}'. The tasks are ${tasks.join(', ')}.`)
  return task
}

/** `infer job list`: lists jobs. */
export function define(command: Command, terminal: Terminal): void {
  const list = withCommon(command.command('list'))
    .summary('list jobs, newest first')
    .description(
      'Lists the jobs of the organization, newest first. On a narrow terminal shows the end of each id, which every command accepts.',
    )
    .addOption(new Option('--status <status>', 'only jobs in this state').choices(jobStatuses))
    .option('--task <name>', 'only jobs of this task, such as text-to-image', readTaskName)
    .option('--model <id>', 'only jobs of this model')
    .option('--since <time>', 'only jobs created since: 30m, 2h, 7d or a date', readSince)
    .option('--limit <count>', 'maximum number, 1 to 10000', readCount(1, 10_000), 20)
    .action(async ({ status, task, model, since, limit, json, dataDir }: Options) => {
      const jobs: Job[] = []
      let more = false
      const filter = { status, task, model, since }
      for await (const job of jobPages(openClient(dataDir), filter, undefined, limit + 1)) {
        more = jobs.length === limit
        if (more) break
        jobs.push(job)
      }
      if (json) return terminal.json({ jobs, has_more: more })
      if (jobs.length === 0)
        return terminal.remark(
          (status ?? task ?? model ?? since) ? 'No job matches.' : 'There are no jobs yet. See: infer run --help',
        )
      const width = terminal.isTerminal ? terminal.stdout.columns || 80 : 0
      terminal.table(tableHead, jobRows(jobs, Date.now() / 1000, width, terminal.paint))
      if (more) terminal.remark(`There are more. Show them: --limit ${limit * 5}`)
    })
  withExamples(list, [
    ['infer job list', 'the newest twenty'],
    ['infer job list --status failed --since 1d', 'failures since yesterday'],
    ['infer job list --task text-to-video --json', 'the response of the API'],
  ])
}
