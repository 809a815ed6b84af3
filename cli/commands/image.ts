import { type Command, Option } from '@commander-js/extra-typings'
import { maxImages, maxSources, qualities } from '../../core/tasks/image/image-request.ts'
import { promptOrPiped } from '../chat/prompt.ts'
import { type Client, openClient } from '../client/client.ts'
import { commandTasks } from '../client/command-tasks.ts'
import { generateAll } from '../generation/generate-all.ts'
import { readPriority, readSize } from '../generation/inputs.ts'
import { checkReadable, mediaOf, uploadMedia } from '../generation/media.ts'
import { formatOf, type OutputTarget, outputTargetOf } from '../generation/output-target.ts'
import { submitJob } from '../jobs/submit.ts'
import { chooseModel } from '../models/status.ts'
import { usageFailure } from '../terminal/exit-codes.ts'
import { collect, readCount, readNumber, withCommon, withExamples } from '../terminal/options.ts'
import type { Terminal } from '../terminal/terminal.ts'

/** `infer image [prompt…]`: makes images from a text, or edits images. */
export function define(command: Command, terminal: Terminal): void {
  withCommon(command)
    .description(
      'Makes images from a text, or edits the images of --from, and saves them: follows the job, shows its progress on standard error, and prints the paths of the files. In a pipe, --out - writes one image to standard output.',
    )
    .argument('[prompt...]', 'a description of the image; default: standard input')
    .option('--model <id>', 'the model; default: the first one that makes images, or edits them')
    .option('--from <file>', `an image to edit, a file or a URL; repeatable, ${maxSources} at most`, collect)
    .option('--mask <file>', 'the area to change, as transparent pixels of an image of the same size')
    .option('--size <WxH>', 'width and height in pixels, such as 1024x768', readSize)
    .option('-n, --count <number>', `number of images, 1 to ${maxImages}`, readCount(1, maxImages))
    .option('--seed <number>', 'the same number gives the same images', readCount(0, Number.MAX_SAFE_INTEGER))
    .addOption(new Option('--quality <name>', 'more steps give more detail').choices(Object.keys(qualities)))
    .option('--steps <count>', 'inference steps, 1 to 50', readCount(1, 50))
    .option('--strength <number>', 'how much the result may differ from the input image, 0 to 1', readNumber(0, 1))
    .option('--negative-prompt <text>', 'what the image must not show')
    .option('--transparent', 'a transparent background, with models that can')
    .addOption(new Option('--format <name>', 'file format').choices(['png', 'jpeg', 'webp']))
    .option('-o, --out <file>', 'the file or folder to save it to, or - for standard output')
    .option('--priority <level>', 'order in the queue: low, normal, high or -100 to 100', readPriority)
    .option('--no-wait', 'print the job id and exit; infer job watch follows the job')
    .action(async (words, options) => {
      const { from = [], mask, json = false, wait, count = 1, priority } = options
      for (const image of from) checkReadable('image', image)
      if (mask !== undefined) checkReadable('mask', mask)
      if (from.length === 0 && (mask !== undefined || options.strength !== undefined))
        throw usageFailure(
          `${mask === undefined ? '--strength' : '--mask'} is for an image to edit. Name it with --from.`,
        )
      const prompt = await promptOrPiped(words, terminal)
      if (prompt === '' && from.length === 0)
        throw usageFailure('There is no prompt. Write: infer image "a cat on a mat", or pipe it in.')
      const target = outputTargetOf(options.out)
      if (target.kind === 'stdout' && (json || count > 1))
        throw usageFailure(`--out - takes one image. Remove ${json ? '--json' : '--count'}, or name a folder.`)
      const format = formatFor(target, options.format)

      const connect = (): Client => openClient(options.dataDir)
      const task = from.length > 0 ? 'std/image-edit' : commandTasks.image
      const does = from.length > 0 ? 'edits images' : 'makes images'
      const model = await chooseModel(terminal, connect(), { task, requested: options.model, does })
      const address = async (what: 'image' | 'mask', value: string) => {
        const media = mediaOf(what, value, { flag: what === 'image' ? '--from' : '--mask' })
        return typeof media === 'string' ? media : uploadMedia(connect(), media, terminal)
      }
      const images: string[] = []
      for (const image of from) images.push(await address('image', image))
      const inputs = {
        prompt,
        ...(images.length > 0 ? { image: images.length === 1 ? images[0] : images } : {}),
        ...(mask === undefined ? {} : { mask: await address('mask', mask) }),
        ...given({
          size: options.size && `${options.size.width}x${options.size.height}`,
          n: options.count,
          seed: options.seed,
          quality: options.quality,
          steps: options.steps,
          strength: options.strength,
          negative_prompt: options.negativePrompt,
          background: options.transparent ? 'transparent' : undefined,
          output_format: format,
        }),
      }
      const request = { task, model_id: model, inputs, priority } as const
      const item = { label: model, topic: prompt, suffix: '', target }
      await generateAll(terminal, connect, [{ ...item, submit: one => submitJob(connect, request, one) }], {
        wait,
        json,
      })
    })
  withExamples(command, [
    ['infer image "a cat on a mat"', 'an image in this folder'],
    ['infer image "a cat" --size 512x512 -n 4 --out cats/', 'four images'],
    ['infer image "it wears a hat" --from cat.png', 'edit an image'],
    ['infer image "the cat on the sofa" --from cat.png --from sofa.png', 'of several images'],
    ['infer image --from cat.png -n 3', 'variations of an image'],
  ])
}

const given = (values: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined))

/** Returns the format from the file name or the flag. Throws usage when they differ. */
function formatFor(target: OutputTarget, flag: string | undefined): string | undefined {
  if (target.kind !== 'file') return flag
  const named = formatOf(target.path)
  if (named === 'mp4')
    throw usageFailure(`${target.path} is the name of a video. Use a name with .png, .jpg or .webp, or infer video.`)
  if (named !== undefined && flag !== undefined && named !== flag)
    throw usageFailure(`--out ${target.path} means ${named}, but --format is ${flag}. Remove one of them.`)
  return flag ?? named
}
