import { dataDirectory } from '../../core/config.ts'
import type { GenerationTask } from '../../core/schemas/task.ts'
import { type Client, openClient } from '../client.ts'
import { usage } from '../exit-codes.ts'
import type { Terminal } from '../terminal.ts'
import { type GenerationItem, generateAll } from './generate-all.ts'
import { inputsOf } from './inputs.ts'
import { mediaOf, uploadFile } from './media.ts'
import type { GenerationOptions } from './options.ts'
import { formatOf, outputTargetOf } from './output-target.ts'
import { isVideo, type Medium, type Target } from './target.ts'

export interface GenerateOptions {
  target: Target
  prompt: string
  options: GenerationOptions
  /** A file or an address. */
  image: string | undefined
  json: boolean
  dataDir: string | undefined
  /** Several at once, each in one of these shapes. */
  aspects?: readonly string[]
}

/** Makes what is wished for: reads the files, submits, follows, saves. Throws usage before anything is sent. */
export async function generate(terminal: Terminal, task: GenerateOptions): Promise<void> {
  const { target, prompt, options, image, json, dataDir, aspects } = task
  const place = outputTargetOf(options.out)
  if (place.kind === 'stdout' && (json || aspects))
    throw usage(`--out - is for one file alone. Leave out ${json ? '--json' : '--all-formats'}, or name a folder.`)
  if (aspects && place.kind === 'file')
    throw usage(`--all-formats makes ${aspects.length} files. Name a folder: --out ${options.out}/`)
  const format = place.kind === 'file' ? formatFor(place.path, target.task, options.format) : options.format
  const connect = (): Client => openClient(dataDirectory(dataDir))
  const media = { image, mask: options.mask, video: options.video, audio: options.audio }
  const found = Object.entries(media).flatMap(([name, value]) =>
    value === undefined ? [] : [[name as Medium, mediaOf(name as Medium, value)] as const],
  )
  // What is wrong with the words is said before anything large is sent.
  inputsOf(target.task, prompt, options, media)
  const sent: Partial<Record<Medium, string>> = {}
  for (const [name, one] of found)
    sent[name] = typeof one === 'string' ? one : await uploadFile(connect(), one, terminal)
  const baseInputs = inputsOf(target.task, prompt, { ...options, ...(format === undefined ? {} : { format }) }, sent)
  const topic = prompt || nameOfFile(image ?? options.video ?? options.audio ?? '')
  const order = (label: string, inputs: Record<string, unknown>, suffix: string): GenerationItem => ({
    label,
    topic,
    suffix,
    place,
    request: {
      task: target.task,
      model_id: target.modelId,
      inputs,
      ...(options.priority === undefined ? {} : { priority: options.priority }),
    },
  })
  const orders = aspects
    ? aspects.map(aspect => order(aspect, { ...baseInputs, aspect_ratio: aspect }, aspect.replace(':', 'x')))
    : [order(target.modelId, baseInputs, '')]
  await generateAll(terminal, connect, orders, { wait: options.wait, json })
}

/** What a file is about, where there are no words: its own name. */
const nameOfFile = (path: string): string =>
  path.startsWith('data:')
    ? ''
    : path
        .replace(/[?#].*$/, '')
        .replace(/^.*\//, '')
        .replace(/\.\w+$/, '')

/** The format that the name of the file and the flag agree on. */
function formatFor(path: string, task: GenerationTask, asked: string | undefined): string | undefined {
  const named = formatOf(path)
  if (named === undefined) return asked
  if (asked !== undefined && asked !== named) throw usage(`--out ${path} says ${named}, --format says ${asked}.`)
  if (isVideo(task) !== (named === 'mp4'))
    throw usage(
      `${path} is the name of a ${named === 'mp4' ? 'video' : 'picture'}; this makes a ${isVideo(task) ? 'video: end it with .mp4' : 'picture: end it with .png, .jpg or .webp'}.`,
    )
  return isVideo(task) ? asked : named
}
