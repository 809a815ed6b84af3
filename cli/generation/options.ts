import { type Command, InvalidArgumentError, Option } from 'commander'
import { resolutions } from '../../core/schemas/resolution.ts'
import { type GenerationTask, generationTasks } from '../../core/schemas/task.ts'
import { presetNames } from '../../core/tasks/generation/request.ts'
import { aspectRatios } from '../../core/tasks/generation/size.ts'
import { readCount, readNumber } from '../options.ts'
import { generationTask, nameOf } from './target.ts'

/** What can be said of a picture or a video that is to be made. Names are those of the flags. */
export interface GenerationOptions {
  prompt?: string
  negativePrompt?: string
  mask?: string
  video?: string
  audio?: string
  seed?: number
  frames?: number
  fps?: number
  steps?: number
  guidance?: number
  strength?: number
  resolution?: string
  aspect?: string
  size?: Size
  count?: number
  preset?: string
  format?: string
  task?: GenerationTask
  set?: Setting[]
  out?: string
  priority?: number | string
  /** `--no-wait` makes it false. */
  wait: boolean
}
export interface Size {
  width: number
  height: number
}
export interface Setting {
  name: string
  value: unknown
}

/** `1024x768` as a size in pixels. */
export function readSize(text: string): Size {
  const match = /^(\d{1,5})[x×](\d{1,5})$/i.exec(text)
  if (!match) throw new InvalidArgumentError('Write it as width x height in pixels, for example 1024x768.')
  return { width: Number(match[1]), height: Number(match[2]) }
}

/** `name=value`: the value as JSON where it is some, else as text. */
export function readSetting(text: string, before: Setting[] = []): Setting[] {
  const at = text.indexOf('=')
  if (at <= 0) throw new InvalidArgumentError('Write it as name=value.')
  const written = text.slice(at + 1)
  let value: unknown = written
  try {
    value = JSON.parse(written)
  } catch {
    // Text, then.
  }
  return [...before, { name: text.slice(0, at), value }]
}

export function readPriority(text: string): number | string {
  if (['low', 'normal', 'high'].includes(text)) return text
  const value = Number(text)
  if (!/^-?\d+$/.test(text) || Math.abs(value) > 100)
    throw new InvalidArgumentError('Write low, normal, high, or a whole number from -100 to 100; higher is sooner.')
  return value
}

export function readTask(text: string): GenerationTask {
  const task = generationTask(text)
  if (!task) throw new InvalidArgumentError(`The tasks are ${generationTasks.map(nameOf).join(', ')}.`)
  return task
}

const choice = (flags: string, description: string, choices: readonly string[]): Option =>
  new Option(flags, description).choices(choices)

/** What a model is asked with, whatever it makes. */
export const withPrompt = (command: Command): Command =>
  command
    .option('--prompt <text>', 'the same as the words; also piped in')
    .option('--seed <number>', 'the same number gives the same result', readCount(0, Number.MAX_SAFE_INTEGER))

/** Flags of every command that makes something. */
export const withGeneration = (command: Command): Command =>
  command
    .option('--negative-prompt <text>', 'what is not to be seen')
    .option('--frames <count>', 'frames of the video, 1 to 300', readCount(1, 300))
    .option('--fps <count>', 'frames a second, 1 to 60', readCount(1, 60))
    .option('--steps <count>', 'steps of the model, 1 to 50: more is sharper and slower', readCount(1, 50))
    .option('--guidance <number>', 'how closely the prompt is followed, 1 to 20', readNumber(1, 20))
    .addOption(choice('--resolution <name>', 'how fine it is', resolutions))
    .addOption(choice('--aspect <ratio>', 'its shape; auto is that of the given picture', [...aspectRatios, 'auto']))
    .addOption(choice('--preset <name>', 'steps, frames and frames a second at once', presetNames))
    .option('--set <name=value>', 'a field that only this model knows, repeatable', readSetting)
    .option('--priority <level>', 'low, normal, high or -100 to 100: who is sooner in the queue', readPriority)
    .option('--no-wait', 'print the id of the job and leave; infer job watch follows it')

/** Those of pictures, and of tasks that begin with a file. */
export const withEverything = (command: Command): Command =>
  withGeneration(command)
    .option('--mask <file>', 'where the image may change: white may, black stays')
    .option('--video <file>', 'the video to work on, a file or an address')
    .option('--audio <file>', 'the sound to work on, a file up to 25 MiB or an address')
    .option('--strength <number>', 'how far the result may leave the given image, 0 to 1', readNumber(0, 1))
    .option('--size <WxH>', 'width and height in pixels, such as 1024x768', readSize)
    .option('--count <number>', 'how many pictures, 1 to 4', readCount(1, 4))
    .addOption(choice('--format <name>', 'of the file', ['png', 'jpeg', 'webp', 'mp4']))
    .option('--task <name>', 'what to do, where a model can do several things', readTask)
    .option('--out <file>', 'where to save it, a file, a folder, or - for standard output')
