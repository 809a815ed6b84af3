import { z } from 'zod'

/** How tokens are chosen: the request fields that chat completions and completions share. */
export const sampling = {
  temperature: z
    .number()
    .min(0)
    .max(2)
    .nullish()
    .describe(
      'Randomness of the choice of tokens. With 0 the most likely token is always chosen. When absent, the engine decides (0.8 in the built-in engine).',
    ),
  top_p: z
    .number()
    .min(0)
    .max(1)
    .nullish()
    .describe(
      'Choose only among the most likely tokens whose probabilities add up to this value. When absent, the engine decides (0.95 in the built-in engine).',
    ),
  top_k: z
    .int()
    .min(-1)
    .nullish()
    .describe(
      'Choose only among this many most likely tokens; 0 and -1 mean no limit. When absent, the engine decides (40 in the built-in engine).',
    ),
  min_p: z
    .number()
    .min(0)
    .max(1)
    .nullish()
    .describe(
      'Leave out tokens that are less likely than this fraction of the most likely one. When absent, the engine decides (0.05 in the built-in engine).',
    ),
  seed: z
    .int()
    .nullish()
    .describe(
      'Seed of the random choice. The same seed and request give the same tokens where the engine is deterministic. Default: random.',
    ),
  stop: z
    .union([z.string(), z.array(z.string()).max(4)])
    .nullish()
    .describe('Text at which generation stops, or up to 4 of them. The stop text is not part of the answer.'),
  presence_penalty: z
    .number()
    .min(-2)
    .max(2)
    .nullish()
    .describe('Above 0: tokens that have occurred become less likely. Default: 0.'),
  frequency_penalty: z
    .number()
    .min(-2)
    .max(2)
    .nullish()
    .describe('Above 0: tokens become less likely each time they occur. Default: 0.'),
  repetition_penalty: z
    .number()
    .min(0)
    .nullish()
    .describe('Divides the scores of tokens that have occurred; 1 changes nothing. Default: 1.'),
  logit_bias: z
    .record(z.string(), z.number().min(-100).max(100))
    .nullish()
    .describe('Added to the scores of tokens before one is chosen: token id to a number from -100 to 100.'),
  stream: z
    .boolean()
    .nullish()
    .describe('Whether to send the answer as server-sent events while it is generated. Default: false.'),
  stream_options: z
    .object({
      include_usage: z
        .boolean()
        .optional()
        .describe('Whether to send a last chunk with the token usage, before `[DONE]`. Default: false.'),
      include_obfuscation: z.boolean().optional().describe('Accepted for compatibility; has no effect.'),
    })
    .nullish()
    .describe('Options of the stream. Allowed only with `stream: true`.'),
  user: z
    .string()
    .nullish()
    .describe('Your own id of the end user. Accepted for compatibility; not stored and not sent to the engine.'),
  priority: z
    .int()
    .nullish()
    .describe('Passed to the engine, for engines that schedule by priority (vLLM). Default: 0.'),
  cache_salt: z
    .string()
    .max(256)
    .nullish()
    .describe('Passed to the engine (vLLM): requests share cached prompts only if they have the same salt.'),
}
