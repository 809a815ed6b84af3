import { Failure, type FailureCode, failures } from '../../core/failure.ts'
import { type Client, dataOf } from '../client/client.ts'
import { storedSentence } from '../client/refusal.ts'
import { type Display, openDisplay } from '../jobs/display.ts'
import { followJob } from '../jobs/follow.ts'
import { followOrCancel } from '../jobs/follow-or-cancel.ts'
import { filesOfJob, isOver, type Job, tookOf } from '../jobs/job.ts'
import { type Created, cancel as cancelWork, type SubmitOptions } from '../jobs/submit.ts'
import { exitCodeOf, failureOfThrown, refused } from '../terminal/exit-codes.ts'
import { type Interrupts, withInterrupts } from '../terminal/interruption.ts'
import { lengthText, sizeText } from '../terminal/quantities-text.ts'
import type { Terminal } from '../terminal/terminal.ts'
import type { OutputTarget } from './output-target.ts'
import { saveFiles } from './save-files.ts'

/** One job to submit, whose images or video are saved. */
export interface GenerationItem {
  /** Name of its progress line when there are several. */
  label: string
  /** Text from which the file name is made. */
  topic: string
  /** End of the file name. */
  suffix: string
  /** Creates the job and resolves with it. */
  submit: (options: SubmitOptions) => Promise<Created>
  target: OutputTarget
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
 * Submits all items at once, shows their progress and saves the files. Prints paths on standard output, everything else
 * on standard error. A failure does not stop the other items: with one item it is thrown; with several it is printed
 * and sets the exit code.
 */
export async function generateAll(
  terminal: Terminal,
  connect: () => Client,
  items: readonly GenerationItem[],
  { wait, json }: GenerateAllOptions,
): Promise<void> {
  await withInterrupts(terminal, async interrupts => {
    const labels = items.map(({ label }) => label)
    const display = openDisplay(terminal, labels, { quiet: json })
    try {
      if (!wait) return await submitOnly(terminal, items, json, display, interrupts)
      const outcomes = await Promise.all(
        items.map((item, at) => generateOne(terminal, connect, item, at, display, interrupts, json)),
      )
      display.close()
      if (json) {
        const documents = outcomes.filter(({ job }) => job).map(({ job, saved }) => ({ ...job, saved }))
        if (items.length > 1) terminal.json(documents)
        else if (documents[0]) terminal.json(documents[0])
      }
      if (interrupts.cancel.aborted) return
      reportFailures(
        terminal,
        items,
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
  items: readonly GenerationItem[],
  json: boolean,
  display: Display,
  { cancel }: Interrupts,
): Promise<void> {
  const settled = await Promise.allSettled(
    items.map(({ submit }) => submit({ signal: cancel, onTrouble: display.say })),
  )
  display.close()
  const created = settled.filter(one => one.status === 'fulfilled').map(({ value }) => value)
  if (!json) for (const { id } of created) terminal.print(id)
  else if (items.length > 1) terminal.json(created)
  else if (created[0]) terminal.json(created[0])
  reportFailures(
    terminal,
    items,
    settled.map(one => (one.status === 'rejected' ? failureOfThrown(one.reason) : undefined)),
    json,
  )
}

/** Throws the failure of a single item; prints those of several items. */
function reportFailures(
  terminal: Terminal,
  items: readonly GenerationItem[],
  failures: readonly (Failure | undefined)[],
  json: boolean,
): void {
  for (const [at, failure] of failures.entries()) {
    if (!failure) continue
    if (items.length === 1) throw failure
    const { code, message, details = [] } = failure
    terminal.failed(new Failure(code, `${items[at]!.label}: ${message}`, { details }), json)
    terminal.setExitCode(exitCodeOf(failure))
  }
}

async function generateOne(
  terminal: Terminal,
  connect: () => Client,
  { submit, target, topic, suffix, label }: GenerationItem,
  at: number,
  display: Display,
  interrupts: Interrupts,
  json: boolean,
): Promise<Outcome> {
  const { cancel, leave } = interrupts
  const onTrouble = (sentence: string) => display.say(sentence)
  let id: string | undefined
  let job: Job | undefined
  try {
    const created = await submit({ signal: leave, onTrouble })
    id = created.id
    if (!json) display.say(`${label}: ${id}`)
    job = await followOrCancel(
      {
        id,
        follow: following =>
          followJob(connect, created.id, { ...following, onChange: snapshot => display.change(at, snapshot) }),
        cancel: signal =>
          cancelWork(
            connect,
            ({ api }) => dataOf(api.POST('/api/jobs/{id}/cancel', { params: { path: { id: created.id } } })),
            signal,
          ),
      },
      display.say,
      interrupts,
    )
    display.end(at)
    if (job.status === 'cancelled' && cancel.aborted) {
      display.say(`Cancelled ${id}.`)
      return { job, saved: [] }
    }
    if (job.status !== 'completed') throw failureOfJob(job)
    const saved = await saveFiles({ id, ...filesOfJob(job) }, target, connect, terminal, {
      signal: leave,
      topic,
      suffix,
      onTrouble,
    })
    if (!json) {
      display.say(suffix === '' ? jobSummary(job) : `${label}: ${jobSummary(job)}`)
      display.aside(() => {
        for (const path of saved) terminal.print(path)
      })
    }
    return { job, saved }
  } catch (thrown) {
    display.end(at)
    if (leave.aborted && id !== undefined && !(job && isOver(job.status)))
      display.say(`${id} continues. Follow it: infer job watch ${id}`)
    return { ...(job ? { job } : {}), saved: [], failure: failureOfThrown(thrown) }
  }
}

/** Returns the failure of a job that ended without a result, with the server's message. */
export function failureOfJob(job: Job): Failure {
  const code = job.error?.code ?? ''
  if (job.status === 'cancelled') return refused('cancelled', `The job ${job.id} was cancelled.`)
  return refused(
    Object.hasOwn(failures, code) ? (code as FailureCode) : 'worker_error',
    `The job ${job.id} failed: ${storedSentence(job.error?.message ?? 'the server gave no reason.')}`,
  )
}

/** Describes the files of a job: `832×480, 5.1 s long, 1.2 MiB, seed 42, made in 12 s`. */
export function jobSummary(job: Job): string {
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
