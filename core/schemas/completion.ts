import { z } from 'zod'
import { ChatUsage } from './chat.ts'

/**
 * The wire shapes of completions. Source: OpenAI's published API description (CreateCompletionRequest,
 * CreateCompletionResponse) and the fields that vLLM and llama.cpp add.
 * The request object lists every field that may reach an engine; what it does not list is dropped, never forwarded.
 */
const tokenIds = z.array(z.int().min(0)).min(1)
const text = z.string().min(1)

export const CompletionRequest = z
  .object({
    model: z.string().min(1).max(256),
    prompt: z
      .union([text, z.array(text).min(1).max(2048), tokenIds, z.array(tokenIds).min(1).max(2048)])
      .describe('A text or a list of token ids, or a list of either.'),
    suffix: z.string().nullish().describe('What comes after the text that is to be filled in.'),
    max_tokens: z.int().min(0).nullish().describe('16 where it is left out, as OpenAI has it; 0 only with echo.'),
    temperature: z.number().min(0).max(2).nullish(),
    top_p: z.number().min(0).max(1).nullish(),
    n: z.int().min(1).max(128).nullish(),
    best_of: z.int().min(1).max(128).nullish(),
    echo: z.boolean().nullish(),
    logprobs: z.int().min(0).max(20).nullish().describe('How many of the likeliest tokens to report at each place.'),
    stop: z.union([z.string(), z.array(z.string()).max(4)]).nullish(),
    seed: z.int().nullish(),
    presence_penalty: z.number().min(-2).max(2).nullish(),
    frequency_penalty: z.number().min(-2).max(2).nullish(),
    logit_bias: z.record(z.string(), z.number().min(-100).max(100)).nullish(),
    stream: z.boolean().nullish(),
    stream_options: z
      .object({ include_usage: z.boolean().optional(), include_obfuscation: z.boolean().optional() })
      .nullish(),
    user: z.string().nullish(),
    top_k: z.int().min(-1).nullish(),
    min_p: z.number().min(0).max(1).nullish(),
    repetition_penalty: z.number().min(0).nullish(),
    priority: z.int().nullish(),
    cache_salt: z.string().max(256).nullish(),
  })
  .meta({ id: 'CompletionRequest' })
export type CompletionRequest = z.output<typeof CompletionRequest>

export const CompletionResponse = z
  .object({
    id: z.string(),
    object: z.literal('text_completion'),
    created: z.int(),
    model: z.string(),
    choices: z.array(
      z.object({
        text: z.string(),
        index: z.int(),
        logprobs: z
          .object({
            tokens: z.array(z.string()),
            token_logprobs: z.array(z.number().nullable()),
            top_logprobs: z.array(z.record(z.string(), z.number()).nullable()).nullable(),
            text_offset: z.array(z.int()),
          })
          .nullable(),
        finish_reason: z.enum(['stop', 'length', 'content_filter']),
      }),
    ),
    usage: ChatUsage,
    system_fingerprint: z.string().optional(),
  })
  .meta({ id: 'CompletionResponse' })
export type CompletionResponse = z.output<typeof CompletionResponse>
