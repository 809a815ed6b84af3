import { z } from 'zod'
import { ChatUsage } from './chat.ts'
import {
  array,
  integer,
  modelId,
  namedObject,
  nonEmptyText,
  nullish,
  nullishBoolean,
  nullishString,
  objects,
  oneOf,
  optionalString,
  string,
  tokenIds,
} from './fields.ts'
import { sampling } from './sampling.ts'

/**
 * The wire shapes of completions. Source: OpenAI's published API description (CreateCompletionRequest,
 * CreateCompletionResponse) and the fields that vLLM and llama.cpp add.
 * The request schema lists every field that may reach an engine; other fields are dropped, never forwarded.
 */
export const CompletionRequest = namedObject('CompletionRequest', 'A text to continue.', {
  model: modelId,
  prompt: z
    .union([nonEmptyText, z.array(nonEmptyText).min(1).max(2048), tokenIds, z.array(tokenIds).min(1).max(2048)])
    .describe('A text or a list of token ids, or a list of either.'),
  ...sampling,
  suffix: nullishString('Text that follows the completion, for models that can fill in between.'),
  max_tokens: nullish(z.int().min(0), 'Most tokens to generate. 0 is allowed only with `echo: true`. Default: 16.'),
  n: nullish(z.int().min(1).max(128), 'How many completions to generate for each prompt. Default: 1.'),
  best_of: nullish(
    z.int().min(1).max(128),
    'Generate this many completions and return the `n` most likely. Default: `n`.',
  ),
  echo: nullishBoolean('Whether to return the prompt before the completion. Default: false.'),
  logprobs: nullish(
    z.int().min(0).max(20),
    'How many of the most likely tokens to return for each position. Default: none.',
  ),
})
export type CompletionRequest = z.output<typeof CompletionRequest>

export const CompletionResponse = namedObject('CompletionResponse', 'Continued text.', {
  id: string('Id of the completion, as the engine gave it.'),
  object: z.literal('text_completion'),
  created: integer('Unix seconds.'),
  model: string('Id of the model.'),
  choices: objects('The completions: `n` for each prompt.', {
    text: string('The generated text; after the prompt with `echo: true`.'),
    index: integer('Position among the choices, from 0.'),
    logprobs: z
      .object({
        tokens: array('The tokens of the text.', z.string()),
        token_logprobs: array(
          'Log probability of each token; null for the first token of a prompt.',
          z.number().nullable(),
        ),
        top_logprobs: z
          .array(z.record(z.string(), z.number()).nullable())
          .nullable()
          .describe('For each position the most likely tokens with their log probabilities.'),
        text_offset: array('Where each token begins, in characters from the start of the text.', z.int()),
      })
      .nullable()
      .describe('Log probabilities, if `logprobs` was sent; else null.'),
    finish_reason: oneOf('Why generation ended: `stop` is a natural end or a stop text, `length` the token limit.', [
      'stop',
      'length',
      'content_filter',
    ]),
  }),
  usage: ChatUsage,
  system_fingerprint: optionalString('Names the configuration of the engine, as the engine gave it.'),
})
export type CompletionResponse = z.output<typeof CompletionResponse>
