import { jobIdOf } from '../../core/ids.ts'
import type { GenerationTask } from '../../core/schemas/task.ts'
import { type Api, type Client, dataOf, openClient } from '../client/client.ts'
import { type SubmitOptions, submit, submitJob } from '../jobs/submit.ts'
import { usageFailure } from '../terminal/exit-codes.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { type GenerationItem, generateAll } from './generate-all.ts'
import { inputsOf } from './inputs.ts'
import { mediaOf, uploadMedia } from './media.ts'
import type { GenerationFlags, Priority } from './options.ts'
import { formatOf, outputTargetOf } from './output-target.ts'
import { type GenerationTarget, isVideo, type Medium } from './target.ts'

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
function formatFor(path: string, task: GenerationTask, flag: string | undefined): string | undefined {
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
