import type { Command } from 'commander'
import { dataDirectory } from '../../core/config.ts'
import { streamAnswer, wholeAnswer } from '../chat/ask.ts'
import { openClient } from '../client.ts'
import { commandTasks } from '../command-tasks.ts'
import { refused, usage } from '../exit-codes.ts'
import { generate } from '../generation/generate.ts'
import { checkReadable } from '../generation/media.ts'
import { fetchOfferedModels } from '../generation/offered-models.ts'
import { type GenerationOptions, withEverything, withPrompt } from '../generation/options.ts'
import { namesOf, nearestTarget, type OfferedModel, targetOf } from '../generation/target.ts'
import { interruptible } from '../interruption.ts'
import { collect, readCount, readNumber, withDataDir, withExamples, withJson } from '../options.ts'
import { printable } from '../paint.ts'
import { contentOf, promptOf } from '../run/prompt.ts'
import { showAnswer } from '../run/show.ts'
import { announceWait, isPiped, readAll } from '../standard-input.ts'
import type { Terminal } from '../terminal.ts'

interface ChatOptions {
  system?: string
  temperature?: number
  maxTokens?: number
  hideReasoning?: boolean
  figures?: boolean
}
interface Options extends ChatOptions, GenerationOptions {
  image?: string[]
  json?: boolean
  dataDir?: string
}

/**
 * `infer run <model> [prompt…]`: one question and one answer, or one prompt and its picture or video: the model's task
 * says which.
 */
export function define(command: Command, terminal: Terminal): void {
  withPrompt(withDataDir(withJson(command)))
    .description(
      'Asks a model once. A chat model: the answer is streamed to standard output; the question is the prompt, with what is piped in below it, and reasoning goes to standard error. A model that makes pictures or videos, by its id or its slug: the job is followed, the file saved, and its path printed.',
    )
    .argument('<model>', 'id or slug of the model')
    .argument('[prompt...]', 'the question, or what is to be seen; standard input alone when left out')
    .option(
      '--image <file>',
      'an image file or address: for chat any, repeatable; to work on PNG or JPEG up to 10 MiB',
      collect,
    )
    .optionsGroup('Chat:')
    .option('--system <text>', 'an instruction that stands before everything')
    .option('--temperature <number>', 'how freely words are chosen, 0 to 2', readNumber(0, 2))
    .option('--max-tokens <count>', 'the longest answer', readCount(1, 10_000_000))
    .option('--hide-reasoning', 'do not show what the model thinks before it answers')
    .option('--figures', 'say at the end how long it took and how fast it was')
    .optionsGroup('Pictures and videos:')
  withEverything(command).action(async (model: string, words: string[], options: Options) => {
    const images = options.image ?? []
    for (const image of images) checkReadable('image', image)
    for (const what of ['mask', 'video', 'audio'] as const)
      if (options[what] !== undefined) checkReadable(what, options[what])
    if (options.prompt !== undefined && words.length > 0)
      throw usage('The prompt is said twice: by --prompt and by words. Leave one out.')
    const promptText = options.prompt ?? words.join(' ')
    const piped = () => (isPiped() ? announceWait(terminal, readAll(terminal.stdin)) : '')
    const alone = promptText.trim() === '' ? await piped() : undefined
    const generating = Object.keys(generationFlags).find(name => isGiven(options, name))
    if (promptOf([promptText], alone ?? '') === '' && images.length === 0 && generating === undefined)
      throw usage('There is no prompt. Write: infer run <model> "your question", or pipe it in.')

    const client = openClient(dataDirectory(options.dataDir))
    const models = await fetchOfferedModels(client)
    const { mask, video, audio, task } = options
    const given = {
      image: images.length > 0,
      mask: mask !== undefined,
      video: video !== undefined,
      audio: audio !== undefined,
    }
    const chats = models.some(one => one.model_id === model && one.tasks.includes(commandTasks.run))
    const target = chats && generating === undefined ? undefined : targetOf(models, model, given, { asked: task })
    if (!target) {
      if (generating !== undefined) throw notForPictures(model, generationFlags[generating]!, models)
      const meant = models.some(one => one.model_id === model) ? undefined : nearestTarget(model, models)
      if (meant !== undefined)
        throw refused(
          'model_not_found',
          `There is no model and no slug '${printable(model)}' here. Did you mean '${meant}'? See: infer ls`,
        )
      const prompt = promptOf([promptText], alone ?? (await piped()))
      return await chat(terminal, model, prompt, options)
    }
    const chatting = Object.keys(chatFlags).find(name => isGiven(options, name))
    if (chatting !== undefined)
      throw usage(`'${printable(model)}' makes pictures or videos; ${chatFlags[chatting]!} is for chat models.`)
    if (images.length > 1) throw usage('One --image can be worked on at a time.')
    await generate(terminal, {
      target,
      prompt: promptOf([promptText], alone ?? ''),
      options,
      image: images[0],
      json: options.json === true,
      dataDir: options.dataDir,
    })
  })
  withExamples(command, [
    ['infer run qwen3-8b "Why is the sky blue?"', 'the answer, as it is written'],
    ['git diff | infer run qwen3-8b "Write a commit message"', 'prompt and piped text together'],
    ['infer run qwen3-vl "What is this?" --image cat.png', 'with an image'],
    ['infer run demo/text-to-image "a cat" --out cat.png', 'a picture'],
    ['infer run demo/image-to-video "it jumps" --image cat.png', 'a video of it'],
    ['infer run qwen3-8b --json < prompt.txt', 'the whole answer as the API gives it'],
  ])
}

async function chat(terminal: Terminal, model: string, prompt: string, options: Options): Promise<void> {
  const { system, temperature, maxTokens, seed, json, hideReasoning, figures, image = [], dataDir } = options
  const content = contentOf(prompt, image)
  const client = openClient(dataDirectory(dataDir))
  const body = {
    model,
    messages: [...(system === undefined ? [] : [{ role: 'system', content: system }]), { role: 'user', content }],
    ...(temperature === undefined ? {} : { temperature }),
    ...(maxTokens === undefined ? {} : { max_completion_tokens: maxTokens }),
    ...(seed === undefined ? {} : { seed }),
  }
  await interruptible(terminal, async signal => {
    const asking = { client, signal, onWait: () => terminal.waiting(`${model} is being loaded…`) }
    if (json) terminal.json(await wholeAnswer(body, asking))
    else
      await showAnswer(terminal, streamAnswer(body, asking), {
        reasoning: hideReasoning !== true,
        figures: figures === true,
      })
  })
}

/** Flags that only one of the two kinds of models knows, by the name of the option. */
const chatFlags: Record<string, string> = {
  system: '--system',
  temperature: '--temperature',
  maxTokens: '--max-tokens',
  hideReasoning: '--hide-reasoning',
  figures: '--figures',
}
const generationFlags: Record<string, string> = {
  negativePrompt: '--negative-prompt',
  mask: '--mask',
  video: '--video',
  audio: '--audio',
  frames: '--frames',
  fps: '--fps',
  steps: '--steps',
  guidance: '--guidance',
  strength: '--strength',
  resolution: '--resolution',
  aspect: '--aspect',
  size: '--size',
  count: '--count',
  preset: '--preset',
  format: '--format',
  task: '--task',
  set: '--set',
  out: '--out',
  priority: '--priority',
  wait: '--no-wait',
}
const isGiven = (options: Options, name: string): boolean => {
  const value = (options as unknown as Record<string, unknown>)[name]
  return name === 'wait' ? value === false : value !== undefined
}

/** A flag that says that something is to be made, and a name of which nothing can be. */
function notForPictures(model: string, flag: string, models: readonly OfferedModel[]) {
  const names = models.flatMap(model => namesOf(model))
  const meant = nearestTarget(model, models, () => true)
  const here =
    names.length === 0 ? 'No model here does. See: infer model list' : `Those here: ${names.slice(0, 8).join(', ')}.`
  if (models.some(one => one.model_id === model))
    return usage(`'${printable(model)}' does not make pictures or videos, for which ${flag} is. ${here}`)
  return refused(
    'model_not_found',
    `There is no model and no slug '${printable(model)}' that makes pictures or videos. ${meant === undefined ? '' : `Did you mean '${meant}'? `}${here}`,
  )
}
