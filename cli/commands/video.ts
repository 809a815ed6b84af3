import type { Command } from 'commander'
import { dataDirectory } from '../../core/config.ts'
import { generationRequests } from '../../core/tasks/generation/request.ts'
import { openClient } from '../client.ts'
import { refused, usage } from '../exit-codes.ts'
import { generate } from '../generation/generate.ts'
import { checkReadable } from '../generation/media.ts'
import { fetchOfferedModels } from '../generation/offered-models.ts'
import { type GenerationOptions, readTask, withGeneration, withPrompt } from '../generation/options.ts'
import { isVideo, nameOf, namesOf, nearestTarget, targetOf } from '../generation/target.ts'
import { withDataDir, withExamples, withJson } from '../options.ts'
import { printable } from '../paint.ts'
import { promptOf } from '../run/prompt.ts'
import { announceWait, isPiped, readAll } from '../standard-input.ts'
import type { Terminal } from '../terminal.ts'

interface Options extends GenerationOptions {
  image?: string
  allFormats?: boolean
  json?: boolean
  dataDir?: string
}

/** The shapes that `--all-formats` makes. */
const formats = ['16:9', '9:16', '1:1'] as const

/** `infer video <model> --prompt …`: a video, or the same one in every shape at once. */
export function define(command: Command, terminal: Terminal): void {
  withGeneration(withPrompt(withDataDir(withJson(command))))
    .description(
      'Makes a video and saves it: the job is followed, its progress shown on standard error, and the path of the file printed. With --all-formats three videos are made at once, one for each shape; what became of each is told, and those that came out are kept.',
    )
    .argument('<model>', 'id or slug of the model')
    .argument('[prompt...]', 'what is to be seen; standard input when left out')
    .option('--all-formats', 'three videos at once: 16:9, 9:16 and 1:1')
    .option('--image <file>', 'the picture that it begins with, PNG or JPEG up to 10 MiB, or an address')
    .option('--audio <file>', 'what is spoken in it, a file up to 25 MiB or an address')
    .option('--video <file>', 'the video to work on, a file or an address')
    .option('--task <name>', 'what to do, where a model can do several things', readTask)
    .option('--out <folder>', 'where to save it, a folder or a file, or - for standard output')
    .action(async (model: string, words: string[], options: Options) => {
      const { image, video, audio, task, allFormats } = options
      for (const [what, path] of [
        ['image', image],
        ['audio', audio],
        ['video', video],
      ] as const)
        if (path !== undefined) checkReadable(what, path)
      if (options.prompt !== undefined && words.length > 0)
        throw usage('The prompt is said twice: by --prompt and by words. Leave one out.')
      if (allFormats && options.aspect !== undefined)
        throw usage('--all-formats makes every shape, --aspect one of them. Leave one out.')
      const promptText = options.prompt ?? words.join(' ')
      const piped = promptText.trim() === '' && isPiped() ? await announceWait(terminal, readAll(terminal.stdin)) : ''
      const models = await fetchOfferedModels(openClient(dataDirectory(options.dataDir)))
      const given = { image: image !== undefined, mask: false, video: video !== undefined, audio: audio !== undefined }
      const target = targetOf(models, model, given, { asked: task, only: isVideo })
      if (!target) {
        const meant = nearestTarget(model, models, isVideo)
        const names = models.flatMap(model => namesOf(model, isVideo))
        throw refused(
          'model_not_found',
          `There is no model and no slug '${printable(model)}' that makes videos. ${meant === undefined ? '' : `Did you mean '${meant}'? `}${names.length > 0 ? `Those here: ${names.slice(0, 8).join(', ')}.` : 'No model here does. See: infer model list'}`,
        )
      }
      if (allFormats && !Object.hasOwn(generationRequests[target.task].shape, 'aspect_ratio'))
        throw usage(`${nameOf(target.task)} keeps the shape of what it is given; leave out --all-formats.`)
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
    ['infer video demo/text-to-video "a cat jumps"', 'one video, in this folder'],
    ['infer video demo/image-to-video "it jumps" --image cat.png', 'beginning with a picture'],
    ['infer video demo/text-to-video "a cat" --all-formats --out clips/', 'three at once'],
  ])
}
