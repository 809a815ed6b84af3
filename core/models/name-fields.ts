import { z } from 'zod'
import { Duration } from '../quantities.ts'
import { modelNameSchema } from './model-id.ts'
import { priceSchema } from './price.ts'

/** The other keys of the model in each example. */
const qwen = { id: 'qwen3-8b', source: '/models/qwen3-8b-q4_k_m.gguf' }
const support = { temperature: 0.2, system_prompt: 'You answer questions about our shop, in one paragraph.' }
const profiled = { ...qwen, profiles: { team: support } }

const samplingNumber = (schema: z.ZodNumber, description: string, unit: string, example: number) =>
  schema.optional().meta({ description, unit, example, with: profiled, absent: 'the engine decides' })

/** One entry under `profiles` of a model. The bounds are those of requests. */
const Profile = z.strictObject({
  description: z.string().optional().meta({
    description: 'Text about the profile that lists of models show.',
    example: 'Answers customers',
    with: profiled,
    absent: 'that of the model',
  }),
  system_prompt: z.string().min(1).max(100_000).optional().meta({
    description:
      'Text that every conversation begins with. A system message at the start of a request follows it in the same message.',
    example: support.system_prompt,
    with: profiled,
    absent: 'none',
  }),
  max_tokens: samplingNumber(z.int().min(1), 'Most tokens to generate, reasoning included.', 'tokens', 1_000),
  temperature: samplingNumber(z.number().min(0).max(2), 'Randomness of the choice of tokens.', 'factor', 0.2),
  top_p: samplingNumber(
    z.number().min(0).max(1),
    'Choose only among the most likely tokens whose probabilities add up to this value.',
    'probability',
    0.9,
  ),
  top_k: samplingNumber(z.int().min(-1), 'Choose only among this many most likely tokens.', 'tokens', 20),
  min_p: samplingNumber(
    z.number().min(0).max(1),
    'Leave out tokens that are less likely than this fraction of the most likely one.',
    'fraction',
    0.05,
  ),
  presence_penalty: samplingNumber(
    z.number().min(-2).max(2),
    'Above 0, tokens that have occurred become less likely.',
    'points',
    0.5,
  ),
  frequency_penalty: samplingNumber(
    z.number().min(-2).max(2),
    'Above 0, tokens become less likely each time they occur.',
    'points',
    0.5,
  ),
  repetition_penalty: samplingNumber(
    z.number().min(0),
    'Divides the scores of tokens that have occurred.',
    'factor',
    1.1,
  ),
  stop: z
    .array(z.string().min(1))
    .min(1)
    .max(100)
    .optional()
    .meta({
      description: 'Texts at which generation stops.',
      example: ['###'],
      with: profiled,
      absent: 'none',
    }),
  reasoning_effort: z.string().min(1).max(32).optional().meta({
    description: 'How much a reasoning model thinks before it answers, such as `none`, `low`, `medium` or `high`.',
    example: 'low',
    with: profiled,
    absent: 'the model decides',
  }),
  chat_template_kwargs: z
    .record(z.string(), z.unknown())
    .optional()
    .meta({
      description: 'Variables for the chat template of the model. Those of a request are added to them.',
      example: { enable_thinking: false },
      with: profiled,
      absent: 'none',
    }),
  price: priceSchema()
    .optional()
    .meta({
      description: 'What requests under this name cost, in place of the whole price of the model.',
      example: { input_per_million_tokens: 0.1, output_per_million_tokens: 0.3 },
      with: profiled,
      absent: 'the price of the model',
    }),
})
export type Profile = z.output<typeof Profile>

const hosted = { model: 'hosted', when: ['failed'], wait: '30s' }
const twoModels = [
  { ...qwen, fallbacks: [hosted] },
  { id: 'hosted', engine: 'remote', url: 'https://api.example.com/v1' },
]
const fallenBack = { models: twoModels }

/** One entry under `fallbacks` of a model. */
const Fallback = z
  .strictObject({
    model: z.string().meta({
      description: 'Id of the other model. It does the same tasks.',
      example: 'hosted',
      with: fallenBack,
    }),
    when: z
      .array(z.enum(['failed', 'context']))
      .default(['failed', 'context'])
      .meta({
        description:
          '`failed`: the engine cannot be started, ends, or answers with an error of its own before the first byte. `context`: the prompt is longer than the context.',
        example: ['failed'],
        with: fallenBack,
      }),
    wait: Duration.optional().meta({
      description:
        'Also when a request would wait longer than this for the model, by the expected time of its load and its queue, or has waited that long.',
      example: '30s',
      with: fallenBack,
      absent: 'however long a request waits',
    }),
    monthly_spend_limit: z.number().min(0).max(1e9).optional().meta({
      description:
        'Most that an organization may spend in a calendar month in UTC on answers of the other model as a fallback, by its price. Work that may cost more than is left waits for the model itself, or fails as without this fallback. Nodes of workflows do not use a fallback with a limit.',
      unit: 'currency units',
      example: 20,
      with: fallenBack,
      absent: 'no limit',
    }),
  })
  .refine(({ when, wait }) => when.length > 0 || wait !== undefined, {
    error: "Name a condition in 'when', or set 'wait'.",
    path: ['when'],
  })
export type Fallback = z.output<typeof Fallback>

/** Keys of a model about further names of it, and about models that answer in its place. */
export const nameFields = {
  aliases: z
    .array(modelNameSchema())
    .max(100)
    .optional()
    .meta({
      description:
        'Further names of the model in requests. An alias is allowed for a token that may use the model, or the alias.',
      example: ['gpt-4o-mini', 'default'],
      absent: 'none',
    }),
  profiles: z
    .record(modelNameSchema(), Profile)
    .optional()
    .meta({
      description:
        'Names under which the model has other defaults and another price. All share its engine, queue and slots. A field of a request wins over the profile. Lists of allowed models must name a profile itself.',
      example: { 'shop-support': support },
      absent: 'none',
    }),
  fallbacks: z
    .array(Fallback)
    .min(1)
    .max(10)
    .optional()
    .meta({
      description:
        'Models that answer in place of this one, in this order: each at most once, and only before the first byte of an answer. A token must be allowed to use them, their limits and prices apply, and their own fallbacks do not.',
      example: [hosted],
      with: fallenBack,
      absent: 'none: the request fails or waits',
    }),
}
