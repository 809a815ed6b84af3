import type { Command } from '@commander-js/extra-typings'
import { askOnce, showAnswer, streamAnswer } from '../chat/ask.ts'
import { type ChatSettings, chatRequest } from '../chat/conversation.ts'
import { promptContent, promptOf } from '../chat/prompt.ts'
import { type Client, openClient } from '../client/client.ts'
import { commandTasks } from '../client/command-tasks.ts'
import { generate } from '../generation/generate-all.ts'
import { type GenerationFlags, withEverything, withPrompt } from '../generation/inputs.ts'
import { checkReadable } from '../generation/media.ts'
import { type GenerationModel, generationTarget, modelNames, nearestTarget } from '../generation/target.ts'
import { fetchOfferedModels } from '../models/status.ts'
import { refused, usageFailure } from '../terminal/exit-codes.ts'
import { interruptible } from '../terminal/interruption.ts'
import { type CommonOptions, collect, readCount, readNumber, withCommon, withExamples } from '../terminal/options.ts'
import { announceWait, isPiped, readAll } from '../terminal/standard-input.ts'
import { printable } from '../terminal/styled-line.ts'
import type { Terminal } from '../terminal/terminal.ts'

interface ChatOptions extends ChatSettings {
  system?: string
  hideReasoning?: boolean
  figures?: boolean
  verbose?: boolean
}
interface Options extends ChatOptions, GenerationFlags, CommonOptions {
  image?: string[]
}

/** The groups of options that only chat models, and only models for images and videos have. */
const chatGroup = 'Chat:'
const generationGroup = 'Images and videos:'

/**
 * `infer run <model> [prompt…]`: sends one prompt. The model's task decides whether the result is text, an image or a
 * video.
 */
export function define(command: Command, terminal: Terminal): void {
  const described = withPrompt(withCommon(command))
    .description(
      'Sends one prompt to a model. With a chat model: streams the answer to standard output and reasoning to standard error; piped text is added below the prompt. With a model for images or videos, by its id or slug: follows the job, saves the file and prints its path.',
    )
    .argument('<model>', 'id or slug of the model')
    .argument('[prompt...]', 'the question, or a description of the image or video; default: standard input')
    .option(
      '--image <file>',
      'an image file or URL; repeatable for chat; for generation one PNG or JPEG up to 10 MiB',
      collect,
    )
    .option('--verbose', 'say at the end where the model has run, and for text the time and speed')
    .optionsGroup(chatGroup)
    .option('--system <text>', 'system prompt')
    .option('--temperature <number>', 'sampling temperature, 0 to 2', readNumber(0, 2))
    .option('--max-tokens <count>', 'maximum length of the answer in tokens', readCount(1, 10_000_000))
    .option('--hide-reasoning', "do not show the model's reasoning")
    .option('--figures', 'print time and speed at the end')
    .optionsGroup(generationGroup)
  /** The flag of the first option of a group that was given. */
  const givenOf = (group: string) =>
    command.options.find(
      one => one.helpGroupHeading === group && command.getOptionValueSource(one.attributeName() as never) === 'cli',
    )?.long
  withEverything(described).action(async (model, words, options) => {
    const images = options.image ?? []
    for (const image of images) checkReadable('image', image)
    for (const what of ['mask', 'video', 'audio'] as const)
      if (options[what] !== undefined) checkReadable(what, options[what])
    if (options.prompt !== undefined && words.length > 0)
      throw usageFailure('The prompt is given twice: with --prompt and as words. Remove one.')
    const promptText = options.prompt ?? words.join(' ')
    const piped = () => (isPiped() ? announceWait(terminal, readAll(terminal.stdin)) : '')
    const pipedPrompt = promptText.trim() === '' ? await piped() : undefined
    const generating = givenOf(generationGroup)
    if (promptOf([promptText], pipedPrompt ?? '') === '' && images.length === 0 && generating === undefined)
      throw usageFailure('There is no prompt. Write: infer run <model> "your question", or pipe it in.')

    const client = openClient(options.dataDir)
    const models = await fetchOfferedModels(client)
    const { mask, video, audio, task } = options
    const given = {
      image: images.length > 0,
      mask: mask !== undefined,
      video: video !== undefined,
      audio: audio !== undefined,
    }
    const isChatModel = models.some(one => one.model_id === model && one.tasks.includes(commandTasks.run))
    const target =
      isChatModel && generating === undefined ? undefined : generationTarget(models, model, given, { requested: task })
    if (!target) {
      if (generating !== undefined) throw notForGeneration(model, generating, models)
      const closest = models.some(one => one.model_id === model) ? undefined : nearestTarget(model, models)
      if (closest !== undefined)
        throw refused(
          'model_not_found',
          `There is no model and no slug '${printable(model)}' here. Did you mean '${closest}'? See: infer ls`,
        )
      const prompt = promptOf([promptText], pipedPrompt ?? (await piped()))
      await chat(terminal, model, prompt, options)
      if (options.verbose) await showPlacement(terminal, client, model)
      return
    }
    const chatting = givenOf(chatGroup)
    if (chatting !== undefined)
      throw usageFailure(`'${printable(model)}' makes images or videos; ${chatting} is for chat models.`)
    if (images.length > 1) throw usageFailure('This model takes one --image. Remove the others.')
    await generate(terminal, {
      target,
      prompt: promptOf([promptText], pipedPrompt ?? ''),
      options,
      image: images[0],
      json: options.json === true,
      dataDir: options.dataDir,
    })
    if (options.verbose) await showPlacement(terminal, client, target.modelId)
  })
  withExamples(command, [
    ['infer run qwen3-8b "Why is the sky blue?"', 'stream the answer'],
    ['git diff | infer run qwen3-8b "Write a commit message"', 'prompt and piped text together'],
    ['infer run qwen3-vl "What is this?" --image cat.png', 'with an image'],
    ['infer run demo/text-to-image "a cat" --out cat.png', 'an image'],
    ['infer run demo/image-to-video "it jumps" --image cat.png', 'a video of it'],
    ['infer run qwen3-8b "Hello" --verbose', 'and where the model has run'],
    ['infer run qwen3-8b --json < prompt.txt', 'the complete response of the API'],
  ])
}

async function chat(terminal: Terminal, model: string, prompt: string, options: Options): Promise<void> {
  const { system, temperature, maxTokens, seed, json, hideReasoning, figures, verbose, image = [], dataDir } = options
  const content = promptContent(prompt, image)
  const client = openClient(dataDir)
  const body = chatRequest({ model, system }, [{ role: 'user', content }], { temperature, maxTokens, seed })
  await interruptible(terminal, async signal => {
    const askOptions = { client, signal, onWait: () => terminal.waiting(`Loading ${model}…`) }
    if (json) terminal.json(await askOnce(body, askOptions))
    else
      await showAnswer(terminal, streamAnswer(body, askOptions), {
        reasoning: hideReasoning !== true,
        figures: figures === true || verbose === true,
      })
  })
}

/** Says where the engine of the model runs. */
async function showPlacement(terminal: Terminal, client: Client, model: string): Promise<void> {
  const { placement } = (await fetchOfferedModels(client)).find(one => one.model_id === model) ?? {}
  if (placement) terminal.remark(printable(`'${model}' runs ${placement.detail}.`))
}

/** The error for a generation flag with a model that generates nothing. */
function notForGeneration(model: string, flag: string, models: readonly GenerationModel[]) {
  const names = models.flatMap(model => modelNames(model))
  const closest = nearestTarget(model, models, () => true)
  const available =
    names.length === 0 ? 'No model here does. See: infer model list' : `Available: ${names.slice(0, 8).join(', ')}.`
  if (models.some(one => one.model_id === model))
    return usageFailure(
      `'${printable(model)}' does not make images or videos, and ${flag} is only for those. ${available}`,
    )
  return refused(
    'model_not_found',
    `There is no model and no slug '${printable(model)}' that makes images or videos. ${closest === undefined ? '' : `Did you mean '${closest}'? `}${available}`,
  )
}
