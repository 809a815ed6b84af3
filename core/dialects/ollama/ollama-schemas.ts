import { z } from 'zod'
import {
  namedObject,
  nonEmptyString,
  nonEmptyText,
  nullish,
  nullishBoolean,
  nullishInteger,
  nullishObject,
  nullishString,
  object,
  oneOf,
  optionalString,
  string,
} from '../../schemas/fields.ts'
import { maxStops, stopTexts } from '../../schemas/sampling.ts'

/**
 * The wire shapes of requests in Ollama's form. Source: the documentation and the official client of Ollama. Fields that
 * are not here are ignored, because its clients send all they have.
 */
const Model = nonEmptyText.max(256).describe('Id of the model, as in `GET /ollama/api/tags`.')
const KeepAlive = nullish(
  z.union([z.number(), z.string().max(32)]),
  'In a request without content: `0` unloads the model, anything else loads it. Ignored otherwise: the settings of the model say how long it stays loaded.',
)
const numberBetween = (min: number, max: number, text: string) => nullish(z.number().min(min).max(max), text)

const Options = nullishObject(
  'Sampling. Options of the engine, such as `num_ctx`, are set in `infer.yaml` and are ignored here.',
  {
    temperature: numberBetween(0, 2, 'Randomness of the choice of tokens.'),
    top_p: numberBetween(0, 1, 'Choose among the most likely tokens whose probabilities add up to this.'),
    top_k: nullishInteger('Choose among this many most likely tokens.'),
    min_p: numberBetween(0, 1, 'Leave out tokens less likely than this fraction of the most likely one.'),
    seed: nullishInteger('Seed of the random choice.'),
    num_predict: nullishInteger('Most tokens to generate. Zero and less: no limit.'),
    stop: nullish(z.union([z.string(), z.array(z.string()).max(maxStops)]), stopTexts),
    repeat_penalty: numberBetween(0, 100, 'Divides the scores of tokens that have occurred.'),
    presence_penalty: numberBetween(-2, 2, 'Makes tokens that have occurred less likely.'),
    frequency_penalty: numberBetween(-2, 2, 'Makes tokens less likely each time they occur.'),
  },
)

const Images = nullish(z.array(z.string()).max(64), 'Images in base64.')
const shared = {
  model: Model,
  stream: nullishBoolean('Whether to send the answer as lines of JSON. Default: true.'),
  format: nullish(
    z.union([z.enum(['', 'json']), z.record(z.string(), z.unknown())]),
    '`json`, or the JSON Schema that the answer follows.',
  ),
  think: nullish(
    z.union([z.boolean(), z.enum(['none', 'low', 'medium', 'high', 'max'])]),
    'Whether and how much the model thinks before it answers.',
  ),
  logprobs: nullishBoolean('Whether to return the log probability of each token.'),
  top_logprobs: nullish(z.int().min(0).max(20), 'How many of the most likely tokens to return.'),
  options: Options,
  keep_alive: KeepAlive,
}

const Call = z.object({
  id: optionalString('Id of the call.'),
  function: object('The function that the model called.', {
    name: string('Name of the function.'),
    arguments: z.record(z.string(), z.unknown()).default({}).describe('Arguments.'),
  }),
})
const Message = z.object({
  role: oneOf('Who said it.', ['system', 'user', 'assistant', 'tool']),
  content: nullishString('The text.'),
  thinking: nullishString('What the model thought before it answered.'),
  images: Images,
  tool_calls: nullish(z.array(Call).max(128), 'Tool calls that the model made.'),
  tool_name: nullishString('Of a `tool` message: the tool that it is the result of.'),
  tool_call_id: nullishString('Of a `tool` message: the call that it is the result of.'),
})

export const OllamaChatRequest = namedObject('OllamaChatRequest', "A conversation in Ollama's form.", {
  ...shared,
  messages: nullish(z.array(Message), 'The conversation. Without messages the model is only loaded.'),
  tools: nullish(
    z
      .array(
        z.object({
          type: nullishString('Always `function`.'),
          function: z
            .looseObject({ name: string('Name of the function.') })
            .describe('The function: its name, description and parameters.'),
        }),
      )
      .max(128),
    'Functions that the model may call, as in chat completions.',
  ),
})
export type OllamaChatRequest = z.output<typeof OllamaChatRequest>

export const OllamaGenerateRequest = namedObject('OllamaGenerateRequest', "A prompt in Ollama's form.", {
  ...shared,
  prompt: nullishString('The prompt. Without one the model is only loaded.'),
  system: nullishString('The system message.'),
  images: Images,
  suffix: nullishString('Not supported.'),
  template: nullishString('Not supported: the template of the model is used.'),
  raw: nullishBoolean('Not supported: use `/std/v1/completions`.'),
  context: nullish(z.array(z.number()), 'Not supported: send the conversation to `/ollama/api/chat`.'),
})
export type OllamaGenerateRequest = z.output<typeof OllamaGenerateRequest>

export const OllamaEmbedRequest = namedObject('OllamaEmbedRequest', "Texts to turn into vectors, in Ollama's form.", {
  model: Model,
  input: z.union([nonEmptyText, z.array(nonEmptyText).min(1).max(2048)]).describe('A text, or up to 2048 texts.'),
  dimensions: nullish(z.int().min(1), 'Shorten each vector to this many numbers.'),
  truncate: nullishBoolean(
    'Whether to cut texts that are too long, where the engine can, or to refuse them. Default: true.',
  ),
  keep_alive: KeepAlive,
})

export const OllamaEmbeddingsRequest = namedObject(
  'OllamaEmbeddingsRequest',
  "A text to turn into a vector, in Ollama's older form.",
  {
    model: Model,
    prompt: nonEmptyString('The text.'),
    keep_alive: KeepAlive,
  },
)
