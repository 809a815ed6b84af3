import { z } from 'zod'
import { nullish, nullishBoolean, nullishInteger, nullishObject, nullishString, optionalBoolean } from './fields.ts'

/** Maximum stop texts. Vendors allow four to any number; programs that fill in code send eight. */
export const maxStops = 1_000
export const stopTexts = 'Up to 1000 texts at which generation stops.'

/** How tokens are chosen: the request fields that chat completions and completions share. */
export const sampling = {
  temperature: nullish(
    z.number().min(0).max(2),
    'Randomness of the choice of tokens. With 0 the most likely token is always chosen. When absent, the engine decides (0.8 in the built-in engine).',
  ),
  top_p: nullish(
    z.number().min(0).max(1),
    'Choose only among the most likely tokens whose probabilities add up to this value. When absent, the engine decides (0.95 in the built-in engine).',
  ),
  top_k: nullish(
    z.int().min(-1),
    'Choose only among this many most likely tokens; 0 and -1 mean no limit. When absent, the engine decides (40 in the built-in engine).',
  ),
  min_p: nullish(
    z.number().min(0).max(1),
    'Leave out tokens that are less likely than this fraction of the most likely one. When absent, the engine decides (0.05 in the built-in engine).',
  ),
  seed: nullishInteger(
    'Seed of the random choice. The same seed and request give the same tokens where the engine is deterministic. Default: random.',
  ),
  stop: nullish(
    z.union([z.string(), z.array(z.string()).max(maxStops)]),
    'Text at which generation stops, or up to 1000 of them. The stop text is not part of the answer.',
  ),
  presence_penalty: nullish(
    z.number().min(-2).max(2),
    'Above 0: tokens that have occurred become less likely. Default: 0.',
  ),
  frequency_penalty: nullish(
    z.number().min(-2).max(2),
    'Above 0: tokens become less likely each time they occur. Default: 0.',
  ),
  repetition_penalty: nullish(
    z.number().min(0),
    'Divides the scores of tokens that have occurred; 1 changes nothing. Default: 1.',
  ),
  logit_bias: nullish(
    z.record(z.string(), z.number().min(-100).max(100)),
    'Added to the scores of tokens before one is chosen: token id to a number from -100 to 100.',
  ),
  stream: nullishBoolean('Whether to send the answer as server-sent events while it is generated. Default: false.'),
  stream_options: nullishObject('Options of the stream. Allowed only with `stream: true`.', {
    include_usage: optionalBoolean(
      'Whether to send a last chunk with the token usage, before `[DONE]`. Default: false.',
    ),
    include_obfuscation: optionalBoolean('Accepted for compatibility; has no effect.'),
  }),
  user: nullishString(
    'Your own id of the end user. Accepted for compatibility; not stored and not sent to the engine.',
  ),
  priority: nullishInteger('Passed to the engine, for engines that schedule by priority (vLLM). Default: 0.'),
  cache_salt: nullish(
    z.string().max(256),
    'Passed to the engine (vLLM): requests share cached prompts only if they have the same salt.',
  ),
}
