import type { Command } from 'commander'
import { type Client, openClient } from '../../client/client.ts'
import { failureOfJob, jobSummary } from '../../generation/generate-all.ts'
import { type OutputTarget, outputTargetOf } from '../../generation/output-target.ts'
import { saveFiles } from '../../generation/save-files.ts'
import { type Display, openDisplay } from '../../jobs/display.ts'
import { findIds } from '../../jobs/find.ts'
import { followJob } from '../../jobs/follow.ts'
import { filesOfJob, Job, jobPath } from '../../jobs/job.ts'
import { jobPages } from '../../jobs/job-pages.ts'
import { jobSnapshot } from '../../jobs/job-snapshot.ts'
import { openLogReader } from '../../jobs/log-reader.ts'
import { exitCodeOf, failureOfThrown, usageFailure } from '../../terminal/exit-codes.ts'
import { interruptible } from '../../terminal/interruption.ts'
import { type CommonOptions, withCommon, withExamples } from '../../terminal/options.ts'
import { printable } from '../../terminal/paint.ts'
import type { Terminal } from '../../terminal/terminal.ts'

interface Options extends CommonOptions {
  logs?: boolean
  out?: string
}

/** Maximum number of jobs to follow, because more lines do not fit on a terminal. */
const maxWatched = 20

/** `infer job watch [ids…]`: follows jobs until they have ended. */
export function define(command: Command, terminal: Terminal): void {
  const watch = withCommon(command.command('watch'))
    .summary('follow jobs to their end')
    .description(
      'Follows jobs until they have ended: shows progress, position in the queue and the reason for waiting on standard error, then prints one line per job on standard output. Without ids follows all pending and running jobs. Ctrl-C stops following; the jobs continue. Exits with 1 when a job failed or was cancelled.',
    )
    .argument('[ids...]', 'the jobs, or the ends of their ids')
    .option('--logs', 'also print their logs')
    .option('--out <folder>', 'save their files, and print the paths')
    .action((texts: string[], { dataDir, logs, out, json = false }: Options) =>
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
async function recordsOf(client: Client, texts: readonly string[], signal: AbortSignal): Promise<Job[]> {
  if (texts.length > 0) {
    const ids = await findIds(client, texts, signal)
    return Promise.all(ids.map(id => client.ask({ method: 'GET', path: jobPath(id), answer: Job, signal })))
  }
  const running: Job[] = []
  for (const status of ['processing', 'pending'])
    for await (const job of jobPages(client, { status }, signal)) {
      if (running.length >= maxWatched) break
      running.push(job)
    }
  return running
}

interface WatchOptions {
  signal: AbortSignal
  logs: boolean | undefined
  target: OutputTarget | undefined
  json: boolean
}

/** Follows one job. Prints an error instead of throwing it, and sets the exit code, as for a failed job. */
async function watchOne(
  terminal: Terminal,
  connect: () => Client,
  { id, model_id, ...first }: Job,
  at: number,
  display: Display,
  { signal, logs, target, json }: WatchOptions,
): Promise<(Job & { saved?: string[] }) | undefined> {
  const say = (text: string) => {
    if (!json) display.say(text)
  }
  try {
    display.change(at, jobSnapshot({ id, model_id, ...first }))
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
        onTrouble: sentence => say(sentence === undefined ? 'Connected again.' : `Reconnecting to ${id}. ${sentence}`),
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
      const saved = await saveFiles(job, target, connect, terminal, { signal, topic, suffix: '', onTrouble: say })
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
