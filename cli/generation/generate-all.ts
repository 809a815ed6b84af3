import { Failure, type FailureCode, failures } from '../../core/failure.ts'
import { jobIdOf } from '../../core/ids.ts'
import type { GenerationTask } from '../../core/schemas/task.ts'
import { type Api, type Client, dataOf, openClient } from '../client/client.ts'
import { storedSentence } from '../client/refusal.ts'
import { type Display, openDisplay } from '../jobs/display.ts'
import { followJob } from '../jobs/follow.ts'
import { filesOfJob, isOver, type Job, tookOf } from '../jobs/job.ts'
import {
  type Created,
  cancel as cancelWork,
  followOrCancel,
  type SubmitOptions,
  submit,
  submitJob,
} from '../jobs/submit.ts'
import { exitCodeOf, failureOfThrown, refused, usageFailure } from '../terminal/exit-codes.ts'
import { type Interrupts, withInterrupts } from '../terminal/interruption.ts'
import { lengthText, sizeText } from '../terminal/quantities-text.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { type GenerationFlags, inputsOf, type Priority } from './inputs.ts'
import { mediaOf, uploadMedia } from './media.ts'
import { type FileFormat, formatOf, type OutputTarget, outputTargetOf } from './output-target.ts'
import { saveFiles } from './save-files.ts'
import { type GenerationTarget, isVideo, type Medium } from './target.ts'

/** One job to submit, whose images or video are saved. */
interface GenerationItem {
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

interface GenerateAllOptions {
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

interface GenerateOptions {
  target: GenerationTarget
  prompt: string
  options: GenerationFlags
  /** A file or a URL. */
  image: string | undefined
  json: boolean
  dataDir: string | undefined
  /** Makes one file for each of these aspect ratios. */
  aspects?: readonly string[]
}

/**
 * Uploads the input files, submits the jobs, follows them and saves the results. Throws usage before sending anything.
 */
export async function generate(terminal: Terminal, task: GenerateOptions): Promise<void> {
  const { target, prompt, options, image, json, dataDir, aspects } = task
  const output = outputTargetOf(options.out)
  if (output.kind === 'stdout' && (json || aspects))
    throw usageFailure(`--out - takes one file. Remove ${json ? '--json' : '--all-formats'}, or name a folder.`)
  if (aspects && output.kind === 'file')
    throw usageFailure(`--all-formats makes ${aspects.length} files. Name a folder: --out ${options.out}/`)
  const format = output.kind === 'file' ? formatFor(output.path, target.task, options.format) : options.format
  const connect = (): Client => openClient(dataDir)
  const media = { image, mask: options.mask, video: options.video, audio: options.audio }
  const given = Object.entries(media).flatMap(([name, value]) =>
    value === undefined ? [] : [[name as Medium, mediaOf(name as Medium, value)] as const],
  )
  // Invalid options are refused before large files are sent.
  inputsOf(target.task, prompt, options, media)
  const urls: Partial<Record<Medium, string>> = {}
  for (const [name, one] of given)
    urls[name] = typeof one === 'string' ? one : await uploadMedia(connect(), one, terminal)
  const baseInputs = inputsOf(target.task, prompt, { ...options, ...(format === undefined ? {} : { format }) }, urls)
  const topic = prompt || nameOfFile(image ?? options.video ?? options.audio ?? '')
  const { priority } = options
  const named = { topic, target: output }
  const jobOf = (inputs: Record<string, unknown>): GenerationItem['submit'] => {
    const { task, modelId: model_id } = target
    const request = { task, model_id, inputs, priority }
    return one => submitJob(connect, request, one)
  }
  const shapes = aspects?.map(aspect => ({ ...named, label: aspect, suffix: aspect.replace(':', 'x') }))
  // A request for several videos has no other priorities.
  const isTogether =
    target.slug !== undefined && (priority === undefined || priority === 'low' || priority === 'normal')
  const together = aspects && isTogether && submitTogether(connect, target.slug!, baseInputs, { aspects, priority })
  const items = shapes
    ? shapes.map((shape, at) => ({
        ...shape,
        submit: together ? together(at) : jobOf({ ...baseInputs, aspect_ratio: aspects![at] }),
      }))
    : [{ ...named, label: target.modelId, suffix: '', submit: jobOf(baseInputs) }]
  await generateAll(terminal, connect, items, { wait: options.wait, json })
}

/** Returns the name of a file without its extension, as the topic when there is no prompt. */
const nameOfFile = (path: string): string =>
  path.startsWith('data:')
    ? ''
    : path
        .replace(/[?#].*$/, '')
        .replace(/^.*\//, '')
        .replace(/\.\w+$/, '')

/** Returns the format from the file name or the flag. Throws usage when they differ or do not fit the task. */
function formatFor(path: string, task: GenerationTask, flag: FileFormat | undefined): FileFormat | undefined {
  const named = formatOf(path)
  if (named === undefined) return flag
  if (flag !== undefined && flag !== named)
    throw usageFailure(`--out ${path} means ${named}, but --format is ${flag}. Remove one of them.`)
  if (isVideo(task) !== (named === 'mp4'))
    throw usageFailure(
      `${path} is the name of ${named === 'mp4' ? 'a video' : 'an image'}, but this makes ${isVideo(task) ? 'a video: use a name with .mp4' : 'an image: use a name with .png, .jpg or .webp'}.`,
    )
  return isVideo(task) ? flag : named
}

/**
 * Submits a video for each aspect ratio with one request, which is sent when the first item is submitted. Returns the
 * submission of the item at an index; all items get the failure of the request.
 */
function submitTogether(
  connect: () => Client,
  slug: string,
  inputs: Record<string, unknown>,
  { aspects, priority }: { aspects: readonly string[]; priority: Priority | undefined },
): (at: number) => GenerationItem['submit'] {
  let sent: Promise<Api['GenerationsAccepted']> | undefined
  const params = { path: { slug } }
  const body = { ...inputs, aspect_ratios: aspects } as unknown as Api['GenerationRequest']
  const send = (options: SubmitOptions) =>
    (sent ??= submit(
      connect,
      ({ submissions }, { headers, ...init }) => {
        const all = { ...headers, 'x-fal-queue-priority': priority === 'low' ? 'low' : 'normal' }
        return dataOf(submissions.POST('/slug/{slug}', { params, body, headers: all, ...init }))
      },
      options,
      // A request for several videos has an answer of its own.
    ) as Promise<unknown> as Promise<Api['GenerationsAccepted']>)
  return at => async options => {
    const { requests } = await send(options)
    const queue_id = requests[at]!.request_id
    return { id: jobIdOf(queue_id), queue_id, status: 'pending' }
  }
}
