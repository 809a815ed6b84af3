import { Failure, type FailureCode, failures } from '../../core/failure.ts'
import type { Client } from '../client.ts'
import { storedSentence } from '../command-hints.ts'
import { exitCodeOf, failureOf, refused } from '../exit-codes.ts'
import { type Display, openDisplay } from '../jobs/display.ts'
import { followJob } from '../jobs/follow.ts'
import { type Interrupts, withInterrupts } from '../jobs/interrupt.ts'
import { filesOfJob, isOver, type Job, tookOf } from '../jobs/job.ts'
import { cancelJob, type JobRequest, submitJob } from '../jobs/submit.ts'
import { lengthText, sizeText } from '../quantities-text.ts'
import type { Terminal } from '../terminal.ts'
import type { OutputTarget } from './output-target.ts'
import { saveFiles } from './save-files.ts'

/** One picture or video (or several pictures of one job) that is to be made and saved. */
export interface GenerationItem {
  /** How its line is called where there are several. */
  label: string
  /** What the file is named after. */
  topic: string
  /** Stands at the end of that name. */
  suffix: string
  request: JobRequest
  place: OutputTarget
}

export interface GenerateAllOptions {
  wait: boolean
  json: boolean
}

interface Outcome {
  job?: Job
  saved: string[]
  failure?: Failure
}

/**
 * Has everything made at once, shows how it goes, saves what comes out. Paths on standard output, all else on standard
 * error. One that fails does not stop the others: what it failed of is thrown when it was the only one, else said, and
 * the exit code tells.
 */
export async function generateAll(
  terminal: Terminal,
  connect: () => Client,
  orders: readonly GenerationItem[],
  { wait, json }: GenerateAllOptions,
): Promise<void> {
  await withInterrupts(terminal, async interrupts => {
    const labels = orders.map(({ label }) => label)
    const display = openDisplay(terminal, labels, { quiet: json })
    try {
      if (!wait) return await submitOnly(terminal, connect, orders, json, display, interrupts)
      const outcomes = await Promise.all(
        orders.map((order, at) => makeOne(terminal, connect, order, at, display, interrupts, json)),
      )
      display.close()
      if (json) {
        const documents = outcomes.filter(({ job }) => job).map(({ job, saved }) => ({ ...job, saved }))
        if (orders.length > 1) terminal.json(documents)
        else if (documents[0]) terminal.json(documents[0])
      }
      if (interrupts.cancel.aborted) return
      tell(
        terminal,
        orders,
        outcomes.map(({ failure }) => failure),
        json,
      )
    } finally {
      display.close()
    }
  })
}

async function submitOnly(
  terminal: Terminal,
  connect: () => Client,
  orders: readonly GenerationItem[],
  json: boolean,
  display: Display,
  { cancel }: Interrupts,
): Promise<void> {
  const settled = await Promise.allSettled(
    orders.map(({ request }) => submitJob(connect, request, { signal: cancel, onTrouble: display.say })),
  )
  display.close()
  const created = settled.filter(one => one.status === 'fulfilled').map(({ value }) => value)
  if (!json) for (const { id } of created) terminal.print(id)
  else if (orders.length > 1) terminal.json(created)
  else if (created[0]) terminal.json(created[0])
  tell(
    terminal,
    orders,
    settled.map(one => (one.status === 'rejected' ? failureOf(one.reason) : undefined)),
    json,
  )
}

/** Throws why the only order failed; of several says of each that did why. */
function tell(
  terminal: Terminal,
  orders: readonly GenerationItem[],
  failures: readonly (Failure | undefined)[],
  json: boolean,
): void {
  for (const [at, failure] of failures.entries()) {
    if (!failure) continue
    if (orders.length === 1) throw failure
    const { code, message, details = [] } = failure
    terminal.failed(new Failure(code, `${orders[at]!.label}: ${message}`, { details }), json)
    terminal.setExitCode(exitCodeOf(failure))
  }
}

async function makeOne(
  terminal: Terminal,
  connect: () => Client,
  { request, place, topic, suffix, label }: GenerationItem,
  at: number,
  display: Display,
  interrupts: Interrupts,
  json: boolean,
): Promise<Outcome> {
  const { cancel, leave } = interrupts
  const trouble = (sentence: string) => display.say(sentence)
  let id: string | undefined
  let job: Job | undefined
  try {
    ;({ id } = await submitJob(connect, request, { signal: leave, onTrouble: trouble }))
    if (!json) display.say(`${label}: ${id}`)
    job = await toItsEnd(connect, id, at, display, interrupts)
    display.end(at)
    if (job.status === 'cancelled' && cancel.aborted) {
      display.say(`Cancelled ${id}.`)
      return { job, saved: [] }
    }
    if (job.status !== 'completed') throw failureOfJob(job)
    const saved = await saveFiles(job, place, connect, terminal, { signal: leave, topic, suffix, onTrouble: trouble })
    if (!json) {
      display.say(suffix === '' ? summaryOf(job) : `${label}: ${summaryOf(job)}`)
      display.aside(() => {
        for (const path of saved) terminal.print(path)
      })
    }
    return { job, saved }
  } catch (thrown) {
    display.end(at)
    if (leave.aborted && id !== undefined && !(job && isOver(job.status)))
      display.say(`${id} goes on. Follow it: infer job watch ${id}`)
    return { ...(job ? { job } : {}), saved: [], failure: failureOf(thrown) }
  }
}

/** Follows a job, and cancels it at the first Ctrl-C: what the server then answers is its end. */
async function toItsEnd(
  connect: () => Client,
  id: string,
  at: number,
  display: Display,
  { cancel, leave }: Interrupts,
): Promise<Job> {
  const known = new AbortController()
  const asked = new Promise<void>(resolve => {
    if (cancel.aborted) resolve()
    else cancel.addEventListener('abort', () => resolve(), { once: true })
  })
  const cancelled = asked.then(async () => {
    if (known.signal.aborted) return new Promise<never>(() => undefined)
    display.say(`Cancelling ${id}. Ctrl-C again leaves it running.`)
    const job = await cancelJob(connect, id, leave)
    // It had ended by then: its following says how.
    return job ?? new Promise<never>(() => undefined)
  })
  const followed = followJob(connect, id, {
    signal: AbortSignal.any([leave, known.signal]),
    onChange: snapshot => display.change(at, snapshot),
    onTrouble: sentence =>
      display.say(sentence === undefined ? 'Connected again.' : `${id} is looked for again. ${sentence}`),
  })
  try {
    return await Promise.race([followed, cancelled])
  } finally {
    known.abort()
  }
}

/** Why a job that is over has no result, in the words of the server. */
export function failureOfJob(job: Job): Failure {
  const code = job.error?.code ?? ''
  if (job.status === 'cancelled') return refused('cancelled', `The job ${job.id} was cancelled.`)
  return refused(
    Object.hasOwn(failures, code) ? (code as FailureCode) : 'worker_error',
    `The job ${job.id} failed: ${storedSentence(job.error?.message ?? 'nobody said why.')}`,
  )
}

/** What came out, for a person: `832×480, 5.1 s, 1.2 MiB, seed 42, made in 12 s`. */
export function summaryOf(job: Job): string {
  const { files, seed, durationSeconds } = filesOfJob(job)
  const [first] = files
  const took = tookOf(job)
  const bytes = files.reduce((sum, { file_size }) => sum + (file_size ?? 0), 0)
  const facts = [
    ...(files.length > 1 ? [`${files.length} files`] : []),
    ...(first?.width && first.height ? [`${first.width}×${first.height}`] : []),
    ...(durationSeconds === undefined ? [] : [`${durationSeconds.toFixed(1)} s long`]),
    ...(bytes > 0 ? [sizeText(bytes)] : []),
    ...(seed === undefined ? [] : [`seed ${seed}`]),
    ...(took === undefined ? [] : [`made in ${took < 1 ? 'less than 1 s' : lengthText(took)}`]),
  ]
  return facts.join(', ')
}
