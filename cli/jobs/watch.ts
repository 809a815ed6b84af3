import type { Command } from 'commander'
import { dataDirectory } from '../../core/config.ts'
import { type Client, openClient } from '../client.ts'
import { exitCodeOf, failureOf, usage } from '../exit-codes.ts'
import { failureOfJob, summaryOf } from '../generation/generate-all.ts'
import { type OutputTarget, outputTargetOf } from '../generation/output-target.ts'
import { saveFiles } from '../generation/save-files.ts'
import { interruptible } from '../interruption.ts'
import { withDataDir, withExamples, withJson } from '../options.ts'
import { printable } from '../paint.ts'
import type { Terminal } from '../terminal.ts'
import { type Display, openDisplay } from './display.ts'
import { findIds } from './find.ts'
import { followJob } from './follow.ts'
import { filesOfJob, Job, jobPath } from './job.ts'
import { jobPages } from './job-pages.ts'
import { snapshotOf } from './job-snapshot.ts'
import { openLogReader } from './log-reader.ts'

interface Options {
  logs?: boolean
  out?: string
  json?: boolean
  dataDir?: string
}

/** Lines for more jobs than this fit on no terminal. */
const most = 20

/** `infer job watch [ids…]`: how jobs are getting on, until they have ended. */
export function define(command: Command, terminal: Terminal): void {
  const watch = withDataDir(withJson(command.command('watch')))
    .summary('follow jobs to their end')
    .description(
      'Follows jobs until they have ended: progress, place in the queue and what is waited for on standard error, then one line for each on standard output. Without ids, all that wait or run now. Ctrl-C stops following; the jobs go on. Ends with 1 when one of them failed or was cancelled.',
    )
    .argument('[ids...]', 'the jobs, or the ends of their ids')
    .option('--logs', 'show what they say, too')
    .option('--out <folder>', 'save the files that they make, and print their paths instead')
    .action((texts: string[], { dataDir, logs, out, json = false }: Options) =>
      interruptible(terminal, async signal => {
        const connect = () => openClient(dataDirectory(dataDir))
        const place = out === undefined ? undefined : outputTargetOf(out)
        const jobs = await recordsOf(connect(), texts, signal)
        if (jobs.length > 1 && place && place.kind !== 'folder')
          throw usage(`There are ${jobs.length} jobs. Name a folder: --out ${out}/`)
        if (jobs.length === 0) return terminal.remark('No job waits or runs.')
        const display = openDisplay(
          terminal,
          jobs.map(job => (terminal.stderr.isTTY ? `${job.id.slice(-8)} ${job.model_id}` : job.id)),
          { quiet: json },
        )
        try {
          const ended = await Promise.all(
            jobs.map((job, at) => watchOne(terminal, connect, job, at, display, { signal, logs, place, json })),
          )
          display.close()
          if (json) terminal.json(ended.length === 1 ? (ended[0] ?? null) : { jobs: ended.filter(one => one) })
        } finally {
          display.close()
        }
      }),
    )
  withExamples(watch, [
    ['infer job watch', 'everything that waits or runs'],
    ['infer job watch 7QK2M9XD --logs', 'by the end of its id, with what it says'],
    ['infer job watch job_… --out cat.png', 'and save what it makes'],
  ])
}

/** The jobs that are meant; a wrong id is said before anything is followed. */
async function recordsOf(client: Client, texts: readonly string[], signal: AbortSignal): Promise<Job[]> {
  if (texts.length > 0) {
    const ids = await findIds(client, texts, signal)
    return Promise.all(ids.map(id => client.ask({ method: 'GET', path: jobPath(id), answer: Job, signal })))
  }
  const running: Job[] = []
  for (const status of ['processing', 'pending'])
    for await (const job of jobPages(client, { status }, signal)) {
      if (running.length >= most) break
      running.push(job)
    }
  return running
}

interface WatchOptions {
  signal: AbortSignal
  logs: boolean | undefined
  place: OutputTarget | undefined
  json: boolean
}

/** Follows one job; what cannot be followed is said and counts for the exit code, as a job that failed does. */
async function watchOne(
  terminal: Terminal,
  connect: () => Client,
  { id, model_id, ...first }: Job,
  at: number,
  display: Display,
  { signal, logs, place, json }: WatchOptions,
): Promise<(Job & { saved?: string[] }) | undefined> {
  const say = (text: string) => {
    if (!json) display.say(text)
  }
  try {
    display.change(at, snapshotOf({ id, model_id, ...first }))
    const job = await (async () => {
      await using reader = logs
        ? openLogReader(connect, id, signal, line => say(`${id.slice(-8)} ${printable(line.message)}`))
        : undefined
      return await followJob(connect, id, {
        signal,
        onChange: snapshot => {
          display.change(at, snapshot)
          reader?.look()
        },
        onTrouble: sentence =>
          say(sentence === undefined ? 'Connected again.' : `${id} is looked for again. ${sentence}`),
      })
    })()
    display.end(at)
    if (job.status !== 'completed') {
      const failure = failureOfJob(job)
      if (!json) display.aside(() => terminal.failed(failure, false))
      terminal.setExitCode(exitCodeOf(failure))
      return job
    }
    if (place && filesOfJob(job).files.length > 0) {
      const topic = filesOfJob(job).prompt ?? model_id
      const saved = await saveFiles(job, place, connect, terminal, { signal, topic, suffix: '', onTrouble: say })
      say(summaryOf(job))
      if (!json)
        display.aside(() => {
          for (const path of saved) terminal.print(path)
        })
      return { ...job, saved }
    }
    const line = [`${id} ${job.status}`, summaryOf(job)].filter(text => text !== '').join('  ')
    if (!json) display.aside(() => terminal.print(line))
    return job
  } catch (thrown) {
    signal.throwIfAborted()
    display.end(at)
    const failure = failureOf(thrown)
    display.aside(() => terminal.failed(failure, json))
    terminal.setExitCode(exitCodeOf(failure))
    return undefined
  }
}
