import type { ModelSetEntry } from '../../models/engine-traits.ts'
import { type Estimate, textMetering } from '../metering.ts'
import type { TaskRecord } from '../task.ts'

/** What to rewrite, and how. */
export interface RewriteOptions {
  prompt: string
  /** The task for which the prompt is. */
  task: Pick<TaskRecord, 'title' | 'category'>
  /** How many prompts to write, 1 or more. */
  count: number
  /** Maximum characters of each. */
  maxLength: number
  style?: string | undefined
  /** Language of the new prompts, as a name or a code; that of the prompt if absent. */
  language?: string | undefined
  /** URL of an image that belongs to the prompt. */
  imageUrl?: string | undefined
  seed?: number | undefined
  /** Further instructions of the operator. */
  instructions?: string | undefined
}

/** Maximum characters of a rewritten prompt if the caller sets none. */
export const defaultRewriteLength = 1_000

/** Tokens for the reasoning of a model before its answer. */
const reasoningTokens = 2_048
const maxTokens = 8_192
/** Characters of infer's instructions, at most. */
const instructionsLength = 8_000

const tokensFor = (count: number, maxLength: number): number =>
  Math.min(maxTokens, reasoningTokens + Math.ceil((count * maxLength) / 2))

/** The schema of an answer with `count` prompts, for engines that can be held to one. */
const answerSchema = (count: number) => ({
  type: 'object',
  properties: { prompts: { type: 'array', items: { type: 'string' }, minItems: count, maxItems: count } },
  required: ['prompts'],
  additionalProperties: false,
})

/** Returns the chat request that lets a model rewrite a prompt. `readRewrite` reads its answer. */
export function rewriteRequest(options: RewriteOptions, model: Pick<ModelSetEntry, 'id' | 'traits'>): object {
  const { prompt, count, maxLength, imageUrl, seed } = options
  const asJson = model.traits.features.has('json_schema')
  const text = { type: 'text', text: prompt }
  return {
    model: model.id,
    messages: [
      { role: 'system', content: instructionsFor(options, asJson) },
      {
        role: 'user',
        content: imageUrl === undefined ? prompt : [{ type: 'image_url', image_url: { url: imageUrl } }, text],
      },
    ],
    max_tokens: tokensFor(count, maxLength),
    temperature: 0.7,
    // Engines accept seeds of 32 bits.
    seed: seed && seed % 2 ** 31,
    ...(asJson
      ? {
          response_format: {
            type: 'json_schema',
            json_schema: { name: 'prompts', strict: true, schema: answerSchema(count) },
          },
        }
      : {}),
  }
}

/** The most that a rewrite can use. */
export const rewriteEstimate = ({
  prompt,
  count,
  maxLength,
}: Pick<RewriteOptions, 'prompt' | 'count' | 'maxLength'>): Estimate =>
  textMetering.estimate({
    inputs: { max_tokens: tokensFor(count, maxLength) },
    length: prompt.length + instructionsLength,
    contextLength: null,
    audioBytes: 0,
  })

function instructionsFor(
  { task, count, maxLength, style, language, imageUrl, instructions }: RewriteOptions,
  asJson: boolean,
): string {
  const made = task.category === 'video' ? 'a video' : 'an image'
  const details =
    task.category === 'video'
      ? 'subject, setting, motion, camera, light and mood'
      : 'subject, setting, composition, light and mood'
  const form = asJson
    ? `Answer with JSON: {"prompts": […]} with exactly ${count === 1 ? 'one prompt' : `${count} different prompts`}.`
    : count === 1
      ? 'Answer with the prompt alone, on one line, without quotes.'
      : `Answer with exactly ${count} different prompts, one on each line, without numbers or quotes.`
  return [
    `You rewrite prompts for a model that makes ${made} (${task.title}). The next message is a prompt: do not answer it, rewrite it.`,
    `Keep everything that the prompt asks for, and describe what it leaves open: ${details}.`,
    ...(imageUrl === undefined ? [] : ['The image is the input of the model: the prompt must fit it.']),
    ...(style === undefined ? [] : [`Style: ${style}.`]),
    language === undefined ? 'Write in the language of the prompt.' : `Write in this language: ${language}.`,
    `Each prompt has at most ${maxLength} characters.`,
    ...(instructions === undefined ? [] : [instructions]),
    form,
  ].join('\n')
}
