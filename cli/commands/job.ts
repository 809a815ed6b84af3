import { type Command, InvalidArgumentError, Option } from '@commander-js/extra-typings'
import { type Task, tasks } from '../../core/schemas/task.ts'
import { jobStatuses } from '../../core/store/store.ts'
import { organizationIdFor, organizationNames } from '../accounts/account-client.ts'
import { type Client, dataOf, openClient } from '../client/client.ts'
import { failureOfJob, jobSummary } from '../generation/generate-all.ts'
import { type OutputTarget, outputTargetOf } from '../generation/output-target.ts'
import { saveFiles } from '../generation/save-files.ts'
import { type Display, openDisplay } from '../jobs/display.ts'
import { factLines, factsOf, jobRows, section, tableHead, valueWidth } from '../jobs/draw.ts'
import { followJob, jobSnapshot } from '../jobs/follow.ts'
import {
  filesOfJob,
  findIds,
  findJob,
  type Job,
  type JobSummary,
  jobOf,
  jobPages,
  type ListedJob,
} from '../jobs/job.ts'
import { type LogLine, lineText, logsOf, openLogReader } from '../jobs/log-reader.ts'
import { connectionText } from '../jobs/submit.ts'
import { exitCodeOf, failureOfThrown, usageFailure } from '../terminal/exit-codes.ts'
import { interruptible } from '../terminal/interruption.ts'
import { readCount, readSince, withCommon, withDataDir, withExamples } from '../terminal/options.ts'
import { confirmDestructive } from '../terminal/standard-input.ts'
import { printable } from '../terminal/styled-line.ts'
import type { Terminal } from '../terminal/terminal.ts'

/** `infer job …`: background jobs that the server stores. */
export function define(command: Command, terminal: Terminal): void {
  for (const part of [defineList, defineShow, defineWatch, defineCancel, defineRetry, defineLogs, defineRemove])
    part(command, terminal)
  withExamples(command, [
    ['infer job list', 'jobs and their status'],
    ['infer job watch', 'all pending and running jobs'],
    ['infer job cancel 7QK2M9XD', 'by the end of its id'],
  ])
}

/** Reads a task name, with or without its prefix. */
function readTaskName(text: string): Task {
  const task = tasks.find(one => one === text || one.split('/')[1] === text)
  if (!task) throw new InvalidArgumentError(`There is no task '${text}'. The tasks are ${tasks.join(', ')}.`)
  return task
}

/** `infer job list`: lists jobs. */
function defineList(command: Command, terminal: Terminal): void {
  const list = withCommon(command.command('list'))
    .summary('list jobs, newest first')
    .description(
      'Lists the jobs of the organization, newest first. On a narrow terminal shows the end of each id, which every command accepts.',
    )
    .addOption(new Option('--status <status>', 'only jobs in this state').choices(jobStatuses))
    .option('--task <name>', 'only jobs of this task, such as text-to-image', readTaskName)
    .option('--model <id>', 'only jobs of this model')
    .option('--since <time>', 'only jobs created since: 30m, 2h, 7d or a date', readSince)
    .option('--search <words>', 'only jobs whose prompt has these words')
    .addOption(
      new Option('--org <organization>', 'jobs of another organization, by id or name; for the owner').conflicts(
        'search',
      ),
    )
    .addOption(
      new Option('--all', 'jobs of all organizations; for the owner of the machine').conflicts(['org', 'search']),
    )
    .option('--limit <count>', 'maximum number, 1 to 10000', readCount(1, 10_000), 20)
    .action(async ({ status, task, model, since, search, org, all, limit, json, dataDir }) => {
      const jobs: ListedJob[] = []
      let more = false
      const client = openClient(dataDir)
      const organization = all ? 'all' : org === undefined ? undefined : await organizationIdFor(client, org)
      const filter = { status, task, model, since, search, organization }
      for await (const job of jobPages(client, filter, undefined, limit + 1)) {
        more = jobs.length === limit
        if (more) break
        jobs.push(job)
      }
      if (json) return terminal.json({ jobs, has_more: more })
      if (jobs.length === 0)
        return terminal.remark(
          (status ?? task ?? model ?? since ?? search ?? organization)
            ? 'No job matches.'
            : 'There are no jobs yet. See: infer run --help',
        )
      const width = terminal.isTerminal ? terminal.stdout.columns || 80 : 0
      const rows = jobRows(jobs, Date.now() / 1000, width, terminal.paint)
      const names = all ? await organizationNames(client) : undefined
      const nameOf = ({ organization_id: id }: ListedJob) => names?.get(id) ?? id
      if (names)
        terminal.table(
          ['organization', ...tableHead],
          rows.map((row, at) => [nameOf(jobs[at]!), ...row]),
        )
      else terminal.table(tableHead, rows)
      if (more) terminal.remark(`There are more. Show them: --limit ${limit * 5}`)
    })
  withExamples(list, [
    ['infer job list', 'the newest twenty'],
    ['infer job list --status failed --since 1d', 'failures since yesterday'],
    ['infer job list --search "red boat"', 'by what was requested'],
    ['infer job list --all --status pending', 'what waits, of all organizations'],
    ['infer job list --task text-to-video --json', 'the response of the API'],
  ])
}

/** The members of a result that are or describe files. */
const fileMembers: ReadonlySet<string> = new Set(['images', 'video', 'thumbnail_url', 'audio_url', 'data'])

/** `infer job show <id>`: shows one job. */
function defineShow(command: Command, terminal: Terminal): void {
  const show = withCommon(command.command('show'))
    .summary('show one job with its inputs and its result')
    .description('Shows one job: its state, its inputs, and its result or error.')
    .argument('<id>', 'the job, or the end of its id')
    .action(async (text, { dataDir, json }) => {
      const client = openClient(dataDir)
      const id = await findJob(client, text)
      const job = await jobOf(client, id)
      if (json) return terminal.json(job)
      const width = valueWidth(terminal)
      const { paint } = terminal
      // URLs are never cut, so that they can be copied.
      const { files } = filesOfJob(job)
      const others = Object.entries(job.result ?? {}).filter(([name]) => !fileMembers.has(name))
      const made =
        files.length === 0 ? [] : ['', paint.strong('files'), ...files.map(({ url }) => `  ${printable(url)}`)]
      const facts = factLines(factsOf(job, paint), paint)
      const inputs = section('inputs', job.inputs, width, paint)
      const values = section('result', files.length === 0 ? job.result : Object.fromEntries(others), width, paint)
      terminal.print([...facts, ...inputs, ...values, ...made].join('\n'))
    })
  withExamples(show, [
    ['infer job show 7QK2M9XD', 'by the end of its id'],
    ['infer job show job_… --json', 'the record of the API'],
  ])
}

/** Maximum number of jobs to follow, because more lines do not fit on a terminal. */
const maxWatched = 20

/** `infer job watch [ids…]`: follows jobs until they have ended. */
function defineWatch(command: Command, terminal: Terminal): void {
  const watch = withCommon(command.command('watch'))
    .summary('follow jobs to their end')
    .description(
      'Follows jobs until they have ended: shows progress, position in the queue and the reason for waiting on standard error, then prints one line per job on standard output. Without ids follows all pending and running jobs. Ctrl-C stops following; the jobs continue. Exits with 1 when a job failed or was cancelled.',
    )
    .argument('[ids...]', 'the jobs, or the ends of their ids')
    .option('--logs', 'also print their logs')
    .option('--out <folder>', 'save their files, and print the paths')
    .action((texts, { dataDir, logs, out, json = false }) =>
      interruptible(terminal, async signal => {
        const connect = () => openClient(dataDir)
        const target = out === undefined ? undefined : outputTargetOf(out)
        const jobs = await recordsOf(connect(), texts, signal)
        if (jobs.length > 1 && target && target.kind !== 'folder')
          throw usageFailure(`There are ${jobs.length} jobs. Name a folder: --out ${out}/`)
        if (jobs.length === 0) return terminal.remark('No job is pending or running.')
        const display = openDisplay(
          terminal,
          jobs.map(job => (terminal.stderr.isTTY ? `${job.id.slice(-8)} ${job.model_id}` : job.id)),
          { quiet: json },
        )
        try {
          const ended = await Promise.all(
            jobs.map((job, at) => watchOne(terminal, connect, job, at, display, { signal, logs, target, json })),
          )
          display.close()
          if (json) terminal.json(ended.length === 1 ? (ended[0] ?? null) : { jobs: ended.filter(one => one) })
        } finally {
          display.close()
        }
      }),
    )
  withExamples(watch, [
    ['infer job watch', 'all pending and running jobs'],
    ['infer job watch 7QK2M9XD --logs', 'by the end of its id, with its log'],
    ['infer job watch job_… --out cat.png', 'and save its file'],
  ])
}

/** Returns the records of the jobs. Throws for a wrong id before any job is followed. */
async function recordsOf(client: Client, texts: readonly string[], signal: AbortSignal): Promise<JobSummary[]> {
  if (texts.length > 0) {
    const ids = await findIds(client, texts, signal)
    return Promise.all(ids.map(id => jobOf(client, id, signal)))
  }
  const running: JobSummary[] = []
  for (const status of ['processing', 'pending'] as const)
    for await (const job of jobPages(client, { status }, signal)) {
      if (running.length >= maxWatched) break
      running.push(job)
    }
  return running
}

interface WatchingOptions {
  signal: AbortSignal
  logs: boolean | undefined
  target: OutputTarget | undefined
  json: boolean
}

/** Follows one job. Prints an error instead of throwing it, and sets the exit code, as for a failed job. */
async function watchOne(
  terminal: Terminal,
  connect: () => Client,
  { id, model_id, ...first }: JobSummary,
  at: number,
  display: Display,
  { signal, logs, target, json }: WatchingOptions,
): Promise<(Job & { saved?: string[] }) | undefined> {
  const say = (text: string) => {
    if (!json) display.say(text)
  }
  try {
    display.change(at, jobSnapshot(first))
    const job = await (async () => {
      await using reader = logs
        ? openLogReader(connect, id, signal, line => say(`${id.slice(-8)} ${printable(line.message)}`))
        : undefined
      return await followJob(connect, id, {
        signal,
        onChange: snapshot => {
          display.change(at, snapshot)
          reader?.readNow()
        },
        onTrouble: trouble => say(connectionText(id, trouble)),
      })
    })()
    display.end(at)
    if (job.status !== 'completed') {
      const failure = failureOfJob(job)
      if (!json) display.aside(() => terminal.failed(failure, false))
      terminal.setExitCode(exitCodeOf(failure))
      return job
    }
    if (target && filesOfJob(job).files.length > 0) {
      const topic = filesOfJob(job).prompt ?? model_id
      const saved = await saveFiles({ id, ...filesOfJob(job) }, target, connect, terminal, {
        signal,
        topic,
        suffix: '',
        onTrouble: say,
      })
      say(jobSummary(job))
      if (!json)
        display.aside(() => {
          for (const path of saved) terminal.print(path)
        })
      return { ...job, saved }
    }
    const line = [`${id} ${job.status}`, jobSummary(job)].filter(text => text !== '').join('  ')
    if (!json) display.aside(() => terminal.print(line))
    return job
  } catch (thrown) {
    signal.throwIfAborted()
    display.end(at)
    const failure = failureOfThrown(thrown)
    display.aside(() => terminal.failed(failure, json))
    terminal.setExitCode(exitCodeOf(failure))
    return undefined
  }
}

/** `infer job cancel <ids…>`: cancels pending and running jobs. */
function defineCancel(command: Command, terminal: Terminal): void {
  const cancel = withCommon(command.command('cancel'))
    .summary('cancel pending and running jobs')
    .description(
      'Cancels jobs. A pending job leaves the queue; the engine aborts a running job at once. A job that has ended does not change, and is an error here.',
    )
    .argument('<ids...>', 'the jobs, or the ends of their ids')
    .action(async (texts, { dataDir, json }) => {
      const client = openClient(dataDir)
      const jobs: Job[] = []
      await forEachId(await findIds(client, texts), terminal, { json }, async id => {
        jobs.push(await dataOf(client.api.POST('/api/jobs/{id}/cancel', { params: { path: { id } } })))
        if (!json) terminal.print(`${id} is cancelled.`)
      })
      if (json) terminal.json(texts.length === 1 ? (jobs[0] ?? null) : { jobs })
    })
  withExamples(cancel, [
    ['infer job cancel 7QK2M9XD', 'by the end of its id'],
    ['infer job cancel job_… job_…', 'several at once'],
  ])
}

/** `infer job retry <id>`: submits the work of a job again, as a new job. */
function defineRetry(command: Command, terminal: Terminal): void {
  const retry = withCommon(command.command('retry'))
    .summary('submit a job that has ended again')
    .description('Submits a job that has ended again, with the same inputs, and prints the id of the new job.')
    .argument('<id>', 'the job, or the end of its id')
    .action(async (text, { dataDir, json }) => {
      const client = openClient(dataDir)
      const id = await findJob(client, text)
      const created = await dataOf(client.api.POST('/api/jobs/{id}/retry', { params: { path: { id } } }))
      if (json) return terminal.json(created)
      terminal.print(created.id)
      if (terminal.isTerminal) terminal.remark(`Follow it: infer job watch ${created.id}`)
    })
  withExamples(retry, [
    ['infer job retry 7QK2M9XD', 'by the end of its id'],
    ['infer job watch $(infer job retry job_…)', 'retry it and follow the new job'],
  ])
}

/** `infer job logs <id>`: prints the log of a job. */
function defineLogs(command: Command, terminal: Terminal): void {
  const logs = withDataDir(command.command('logs'))
    .summary('print the log of a job')
    .description(
      'Prints the log of all attempts of a job, oldest line first. With --follow also prints new lines until the job ends.',
    )
    .argument('<id>', 'the job, or the end of its id')
    .option('-f, --follow', 'print new lines until the job has ended')
    .option('--json', 'print one JSON object per line')
    .action((text, { follow, json, dataDir }) =>
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

/** `infer job delete <ids…>`: deletes jobs that have ended, with their files. */
function defineRemove(command: Command, terminal: Terminal): void {
  const remove = withCommon(command.command('delete'))
    .summary('delete jobs that have ended, with their files')
    .description(
      'Deletes jobs that have ended: their inputs, results, logs and files. Their cost stays in the ledger. Cancel pending and running jobs first.',
    )
    .argument('<ids...>', 'the jobs, or the ends of their ids')
    .option('--yes', 'do not ask')
    .action((texts, { dataDir, yes, json }) =>
      interruptible(terminal, async signal => {
        const client = openClient(dataDir)
        const ids = await findIds(client, texts, signal)
        const what = ids.length === 1 ? `${ids[0]} with its files` : `${ids.length} jobs with their files`
        if (!(await confirmDestructive(`Delete ${what}?`, yes, terminal, signal))) return
        const deleted: string[] = []
        await forEachId(ids, terminal, { json, signal }, async id => {
          await client.api.DELETE('/api/jobs/{id}', { params: { path: { id } }, signal })
          deleted.push(id)
          if (!json) terminal.print(`${id} is deleted.`)
        })
        if (json) terminal.json({ deleted })
      }),
    )
  withExamples(remove, [['infer job delete 7QK2M9XD --yes', 'without confirmation']])
}

/**
 * Runs work for each id, in order. A failure is printed and sets the exit code, and the other ids follow. Throws the
 * reason of an aborted signal.
 */
async function forEachId(
  ids: readonly string[],
  terminal: Terminal,
  { json, signal }: { json: boolean | undefined; signal?: AbortSignal },
  work: (id: string) => Promise<void>,
): Promise<void> {
  for (const id of ids)
    try {
      await work(id)
    } catch (thrown) {
      signal?.throwIfAborted()
      const failure = failureOfThrown(thrown)
      terminal.failed(failure, json === true)
      terminal.setExitCode(exitCodeOf(failure))
    }
}
