import type { Command } from '@commander-js/extra-typings'
import { type GenerationTask, operationOf } from '../../core/schemas/task.ts'
import { generationRequests } from '../../core/tasks/generation/request.ts'
import { promptOf } from '../chat/prompt.ts'
import { openClient } from '../client/client.ts'
import { generate } from '../generation/generate-all.ts'
import { readTask, withGeneration, withPrompt } from '../generation/inputs.ts'
import { checkReadable } from '../generation/media.ts'
import {
  type GenerationModel,
  type GenerationTarget,
  type GivenMedia,
  generationTarget,
  isVideo,
  modelNames,
  namesModel,
  nearestTarget,
  possibleTargets,
  taskName,
} from '../generation/target.ts'
import { fetchOfferedModels } from '../models/status.ts'
import { refused, usageFailure } from '../terminal/exit-codes.ts'
import { withCommon, withExamples } from '../terminal/options.ts'
import { announceWait, isPiped, readAll } from '../terminal/standard-input.ts'
import { printable } from '../terminal/styled-line.ts'
import type { Terminal } from '../terminal/terminal.ts'

/** The aspect ratios that `--all-formats` makes. */
const formats = ['16:9', '9:16', '1:1'] as const

/** `infer video [model] [prompt…]`: makes a video, or one for each aspect ratio at once. */
export function define(command: Command, terminal: Terminal): void {
  withGeneration(withPrompt(withCommon(command)))
    .description(
      'Makes a video and saves it: follows the job, shows its progress on standard error, and prints the path of the file. With --all-formats makes three videos at once, one for each aspect ratio, prints the result of each and keeps those that succeeded.',
    )
    .argument('[model]', 'id or slug of the model; default: the first one that makes such a video')
    .argument('[prompt...]', 'a description of the video; default: standard input')
    .option('--model <id>', 'the same as an option')
    .option('--all-formats', 'three videos at once: 16:9, 9:16 and 1:1')
    .option('--image <file>', 'the first image of the video, PNG or JPEG up to 10 MiB, or a URL')
    .option('--audio <file>', 'the speech in it, a file up to 25 MiB or a URL')
    .option('--video <file>', 'the input video, a file or a URL')
    .option('--task <name>', 'the task, for a model with several', readTask)
    .option('--out <folder>', 'the folder or file to save it to, or - for standard output')
    .action(async (first, rest, options) => {
      const { image, video, audio, task, allFormats } = options
      for (const [what, path] of [
        ['image', image],
        ['audio', audio],
        ['video', video],
      ] as const)
        if (path !== undefined) checkReadable(what, path)
      if (allFormats && options.aspect !== undefined)
        throw usageFailure('--all-formats makes every aspect ratio, --aspect makes one. Remove one of the options.')
      const client = openClient(options.dataDir)
      const models = await fetchOfferedModels(client)
      const isNamed =
        options.model === undefined &&
        first !== undefined &&
        (namesModel(first, models) || (options.prompt !== undefined && rest.length === 0))
      const model = isNamed ? first : options.model
      const words = isNamed || first === undefined ? rest : [first, ...rest]
      if (options.prompt !== undefined && words.length > 0)
        throw usageFailure('The prompt is given twice: with --prompt and as words. Remove one.')
      const promptText = options.prompt ?? words.join(' ')
      const piped = promptText.trim() === '' && isPiped() ? await announceWait(terminal, readAll(terminal.stdin)) : ''
      const given = { image: image !== undefined, mask: false, video: video !== undefined, audio: audio !== undefined }
      const target =
        model === undefined
          ? firstTarget(models, given, task, client.url, terminal)
          : (generationTarget(models, model, given, { requested: task, only: isVideo }) ?? unknownModel(model, models))
      if (allFormats && !Object.hasOwn(generationRequests[operationOf(target.task)].shape, 'aspect_ratio'))
        throw usageFailure(`${taskName(target.task)} keeps the aspect ratio of its input. Remove --all-formats.`)
      await generate(terminal, {
        target,
        prompt: promptOf([promptText], piped),
        options,
        image,
        json: options.json === true,
        dataDir: options.dataDir,
        ...(allFormats ? { aspects: formats } : {}),
      })
    })
  withExamples(command, [
    ['infer video "a cat jumps"', 'one video, in this folder'],
    ['infer video demo/text-to-video "a cat jumps"', 'of this model'],
    ['infer video demo/image-to-video "it jumps" --image cat.png', 'beginning with an image'],
    ['infer video demo/text-to-video "a cat" --all-formats --out clips/', 'three at once'],
  ])
}

function unknownModel(name: string, models: readonly GenerationModel[]): never {
  const closest = nearestTarget(name, models, isVideo)
  const names = models.flatMap(model => modelNames(model, isVideo))
  throw refused(
    'model_not_found',
    `There is no model and no slug '${printable(name)}' that makes videos. ${closest === undefined ? '' : `Did you mean '${closest}'? `}${names.length > 0 ? `Available: ${names.slice(0, 8).join(', ')}.` : 'No model here does. See: infer model list'}`,
  )
}

/** Returns the first model that makes a video of the given media, and names the others. */
function firstTarget(
  models: readonly GenerationModel[],
  given: GivenMedia,
  requested: GenerationTask | undefined,
  url: string,
  terminal: Terminal,
): GenerationTarget {
  const [target, ...others] = possibleTargets(models, given, { requested, only: isVideo })
  if (target === undefined) {
    const media = Object.entries(given).flatMap(([medium, isGiven]) => (isGiven ? [`--${medium}`] : []))
    const from = media.length > 0 ? ` from ${media.join(' and ')}` : ''
    throw refused(
      'model_not_found',
      `${url} offers no model that makes videos${requested ? ` by ${taskName(requested)}` : ''}${from}. See: infer model list`,
    )
  }
  if (others.length > 0) {
    const ids = [target, ...others].slice(0, 8).map(({ modelId }) => printable(modelId))
    terminal.remark(`Model: ${ids[0]}. Choose another with --model: ${ids.join(', ')}.`)
  }
  return target
}
