import { z } from 'zod'
import {
  integer,
  modelId,
  namedObject,
  notImplemented,
  nullish,
  nullishBoolean,
  nullishInteger,
  nullishObject,
  nullishString,
  object,
  oneOf,
  optional,
  optionalObject,
  optionalString,
  string,
} from '../../schemas/fields.ts'
import { maxStops, stopTexts } from '../../schemas/sampling.ts'

/** The wire shapes of Cohere's chat (v2). Source: the types of its official client. */
const JsonObject = z.record(z.string(), z.unknown())
const Part = namedObject('CohereContent', 'A part of a message. Its fields depend on `type`.', {
  type: oneOf('Kind of the part.', ['text', 'image_url', 'thinking', 'document']),
  text: optionalString('The text of a `text` part.'),
  thinking: optionalString('The reasoning of a `thinking` part.'),
  image_url: optionalObject('The image of an `image_url` part.', {
    url: string('An http(s) URL or a `data:` URL.'),
    detail: optional(z.enum(['auto', 'low', 'high']), 'Resolution at which the engine reads it.'),
  }),
  document: optionalObject('The document of a `document` part, in the result of a tool.', {
    data: z.union([z.string(), JsonObject]).describe('Text or fields of the document.'),
    id: optionalString('Id of the document.'),
  }),
})
export type CoherePart = z.output<typeof Part>

const ToolCall = z.object({
  id: string('Id of the call.'),
  type: z.literal('function').optional(),
  function: object('The function that is called.', {
    name: string('Name of the tool.'),
    arguments: string('Arguments as JSON text.'),
  }),
})

const Message = namedObject('CohereMessage', 'One message of a conversation.', {
  role: oneOf('Who wrote the message.', ['user', 'assistant', 'system', 'tool']),
  content: nullish(z.union([z.string(), z.array(Part)]), 'A text or a list of parts.'),
  tool_calls: nullish(z.array(ToolCall).max(128), 'Tools that the assistant called.'),
  tool_plan: nullishString('What the assistant said before it called tools.'),
  tool_call_id: optionalString('Id of the call that a message of the role `tool` answers.'),
})
export type CohereMessage = z.output<typeof Message>

const sampled = 'When absent, the engine decides.'

export const CohereChatRequest = namedObject(
  'CohereChatRequest',
  'A conversation to answer. `citation_options` and `safety_mode` are accepted and have no effect.',
  {
    model: modelId,
    messages: z.array(Message).min(1).describe('The conversation so far, oldest message first.'),
    documents: nullish(
      z
        .array(
          z.union([
            z.string(),
            z.object({
              data: z.record(z.string(), z.unknown()).describe('Fields of the document, such as `title` and `text`.'),
              id: optionalString('Id of the document.'),
            }),
          ]),
        )
        .max(1000),
      'Documents that the model reads before it answers, as part of the system message.',
    ),
    tools: nullish(
      z
        .array(
          z.object({
            type: z.literal('function').optional(),
            function: object('The function.', {
              name: string('Name of the tool.'),
              description: optionalString('What the tool does.'),
              parameters: optional(JsonObject, 'JSON Schema of the arguments.'),
            }),
          }),
        )
        .max(128),
      'Tools that the model may call and the caller runs.',
    ),
    tool_choice: nullish(z.enum(['REQUIRED', 'NONE']), 'Whether a tool must or must not be called.'),
    strict_tools: nullishBoolean('Whether arguments must match the schemas exactly. Default: false.'),
    response_format: nullishObject('Form of the answer. Default: text.', {
      type: oneOf('`json_object` for JSON.', ['text', 'json_object']),
      json_schema: nullish(JsonObject, 'JSON Schema of the answer. Default: any object.'),
    }),
    thinking: nullishObject('Reasoning. When absent, the model decides.', {
      type: oneOf('Whether the model reasons before it answers.', ['enabled', 'disabled']),
      token_budget: nullish(
        z.int().min(1),
        'Becomes a reasoning effort: below 4096 `low`, below 16384 `medium`, else `high`.',
      ),
    }),
    stream: nullishBoolean('Whether to send the answer as server-sent events. Default: false.'),
    max_tokens: nullish(z.int().min(1), 'Most tokens to generate.'),
    stop_sequences: nullish(z.array(z.string()).max(maxStops), stopTexts),
    temperature: nullish(z.number().min(0).max(2), `Randomness. ${sampled}`),
    seed: nullishInteger('Seed of the random choice. Default: random.'),
    frequency_penalty: nullish(z.number().min(0).max(2), 'Above 0: tokens that occurred are less likely.'),
    presence_penalty: nullish(z.number().min(0).max(2), 'The same, however often they occurred.'),
    k: nullish(z.int().min(0).max(500), `Number of likely tokens; 0 is no limit. ${sampled}`),
    p: nullish(z.number().min(0).max(1), `Nucleus of likely tokens. ${sampled}`),
    priority: nullishInteger('Passed to the engine, for engines that schedule by priority. Default: 0.'),
    logprobs: notImplemented,
  },
)
export type CohereChatRequest = z.output<typeof CohereChatRequest>

const tokens = z.object({
  input_tokens: integer('Tokens of the prompt.'),
  output_tokens: integer('Tokens of the answer.'),
})

export const CohereChatResponse = namedObject('CohereChatResponse', 'An answer in the form of Cohere.', {
  id: string('Id of the answer.'),
  finish_reason: oneOf('Why generation ended.', ['COMPLETE', 'MAX_TOKENS', 'TOOL_CALL', 'ERROR']),
  message: object('The answer.', {
    role: z.literal('assistant'),
    content: optional(z.array(z.looseObject({ type: string('`thinking` or `text`.') })), 'Reasoning and text.'),
    tool_calls: optional(z.array(ToolCall), 'Tools to call.'),
    citations: optional(z.array(z.unknown()), 'Always empty: engines do not cite.'),
  }),
  usage: object('What was used.', {
    billed_units: tokens.describe('The same as `tokens`.'),
    tokens: tokens.describe('Token counts.'),
    cached_tokens: integer('Tokens of the prompt that the engine took from its cache.'),
  }),
})
