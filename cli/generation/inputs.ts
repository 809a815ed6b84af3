import { type Command, InvalidArgumentError, Option, type OptionValues } from '@commander-js/extra-typings'
import { resolutions } from '../../core/schemas/resolution.ts'
import { type GenerationTask, generationTasks, operationOf } from '../../core/schemas/task.ts'
import { generationRequests, presetNames } from '../../core/tasks/generation/request.ts'
import { aspectRatios } from '../../core/tasks/generation/size.ts'
import { usageFailure } from '../terminal/exit-codes.ts'
import { type NoOptions, type OptionsOf, readCount, readNumber } from '../terminal/options.ts'
import { generationTask, taskName } from './target.ts'

/** Media as the server takes them: http(s) URLs, data: URLs or file ids. */
interface MediaFlags {
  image?: string | undefined
  mask?: string | undefined
  video?: string | undefined
  audio?: string | undefined
}

/**
 * Returns the inputs of a job in the form of the API. The server decides omitted fields. Throws usage for a field that
 * the task does not have, because the server would ignore it without an error.
 */
export function inputsOf(
  task: GenerationTask,
  prompt: string,
  options: GenerationFlags,
  media: MediaFlags,
): Record<string, unknown> {
  const named: Record<string, [flag: string, value: unknown]> = {
    prompt: ['--prompt', prompt === '' ? undefined : prompt],
    negative_prompt: ['--negative-prompt', options.negativePrompt],
    enable_prompt_expansion: ['--expand-prompt', options.expandPrompt],
    image_url: ['--image', media.image],
    mask_url: ['--mask', media.mask],
    video_url: ['--video', media.video],
    audio_url: ['--audio', media.audio],
    seed: ['--seed', options.seed],
    num_frames: ['--frames', options.frames],
    fps: ['--fps', options.fps],
    num_inference_steps: ['--steps', options.steps],
    guidance_scale: ['--guidance', options.guidance],
    strength: ['--strength', options.strength],
    resolution: ['--resolution', options.resolution],
    aspect_ratio: ['--aspect', options.aspect],
    image_size: ['--size', options.size],
    num_images: ['--count', options.count],
    preset: ['--preset', options.preset],
    output_format: ['--format', options.format],
  }
  const given = Object.entries(named).flatMap(([name, [, value]]) =>
    value === undefined ? [] : [[name, value] as const],
  )
  const inputs: Record<string, unknown> = Object.fromEntries(given)
  const known = generationRequests[operationOf(task)].shape as Record<
    string,
    { safeParse(value: unknown): { success: boolean } }
  >
  const unknown = Object.keys(inputs).find(field => !Object.hasOwn(known, field))
  if (unknown !== undefined) throw usageFailure(`${taskName(task)} takes no ${named[unknown]![0]}.`)
  if (prompt === '' && !known.prompt!.safeParse(undefined).success)
    throw usageFailure(`There is no prompt. Describe the result: --prompt "…"`)
  for (const { name, value } of options.set ?? []) {
    if (Object.hasOwn(inputs, name))
      throw usageFailure(`'${name}' is given twice: with ${named[name]![0]} and with --set. Remove one.`)
    inputs[name] = value
  }
  return inputs
}

interface SizeFlag {
  width: number
  height: number
}
interface GivenSetting {
  name: string
  value: unknown
}

/** Reads `1024x768` as a size in pixels. */
export function readSize(text: string): SizeFlag {
  const match = /^(\d{1,5})[x×](\d{1,5})$/i.exec(text)
  if (!match) throw new InvalidArgumentError('Write it as width x height in pixels, for example 1024x768.')
  return { width: Number(match[1]), height: Number(match[2]) }
}

/** Reads `name=value`. A value that is not JSON is text. */
function readSetting(text: string, before: GivenSetting[] = []): GivenSetting[] {
  const at = text.indexOf('=')
  if (at <= 0) throw new InvalidArgumentError('Write it as name=value.')
  const valueText = text.slice(at + 1)
  let value: unknown = valueText
  try {
    value = JSON.parse(valueText)
  } catch {
    // Not JSON: the value stays text.
  }
  return [...before, { name: text.slice(0, at), value }]
}

const priorities = ['low', 'normal', 'high'] as const
export type Priority = number | (typeof priorities)[number]

export function readPriority(text: string): Priority {
  const named = priorities.find(one => one === text)
  if (named) return named
  const value = Number(text)
  if (!/^-?\d+$/.test(text) || Math.abs(value) > 100)
    throw new InvalidArgumentError('Write low, normal, high, or a whole number from -100 to 100; higher runs earlier.')
  return value
}

export function readTask(text: string): GenerationTask {
  const task = generationTask(text)
  if (!task) throw new InvalidArgumentError(`The tasks are ${generationTasks.map(taskName).join(', ')}.`)
  return task
}

const choice = <Usage extends string, const Choices extends readonly string[]>(
  usage: Usage,
  description: string,
  choices: Choices,
) => new Option(usage, description).choices(choices)

/** Adds the options of every command that sends a prompt. */
export const withPrompt = <Args extends unknown[], Options extends OptionValues>(command: Command<Args, Options>) =>
  command
    .option('--prompt <text>', 'the prompt, instead of words or standard input')
    .option('--seed <number>', 'the same number gives the same result', readCount(0, Number.MAX_SAFE_INTEGER))

/** Adds the options of every command that makes images or videos. */
export const withGeneration = <Args extends unknown[], Options extends OptionValues>(command: Command<Args, Options>) =>
  command
    .option('--negative-prompt <text>', 'what the result must not show')
    .option('--expand-prompt', 'let a chat model of the server rewrite the prompt first')
    .option('--frames <count>', 'frames of the video, 1 to 300', readCount(1, 300))
    .option('--fps <count>', 'frames per second, 1 to 60', readCount(1, 60))
    .option('--steps <count>', 'inference steps, 1 to 50; more is sharper and slower', readCount(1, 50))
    .option('--guidance <number>', 'how closely to follow the prompt, 1 to 20', readNumber(1, 20))
    .addOption(choice('--resolution <name>', 'resolution', resolutions))
    .addOption(choice('--aspect <ratio>', 'aspect ratio; auto is that of the input image', [...aspectRatios, 'auto']))
    .addOption(choice('--preset <name>', 'sets steps, frames and frames per second', presetNames))
    .option('--set <name=value>', 'a field that only this model has, repeatable', readSetting)
    .option('--priority <level>', 'order in the queue: low, normal, high or -100 to 100', readPriority)
    .option('--no-wait', 'print the job id and exit; infer job watch follows the job')

/** Adds all options for generation, including those of images and of input files. */
export const withEverything = <Args extends unknown[], Options extends OptionValues>(command: Command<Args, Options>) =>
  withGeneration(command)
    .option('--mask <file>', 'image of the area to change: white changes, black stays')
    .option('--video <file>', 'the input video, a file or a URL')
    .option('--audio <file>', 'the input audio, a file up to 25 MiB or a URL')
    .option('--strength <number>', 'how much the result may differ from the input image, 0 to 1', readNumber(0, 1))
    .option('--size <WxH>', 'width and height in pixels, such as 1024x768', readSize)
    .option('--count <number>', 'number of images, 1 to 4', readCount(1, 4))
    .addOption(choice('--format <name>', 'file format', ['png', 'jpeg', 'webp', 'mp4']))
    .option('--task <name>', 'the task, for a model with several', readTask)
    .option('--out <file>', 'the file or folder to save it to, or - for standard output')

/** The values of all these options. */
export type GenerationFlags = OptionsOf<typeof withEverything<[], OptionsOf<typeof withPrompt<[], NoOptions>>>>
