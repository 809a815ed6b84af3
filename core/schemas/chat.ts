import { z } from 'zod'
import {
  array,
  integer,
  modelId,
  namedObject,
  nullableString,
  nullish,
  nullishBoolean,
  nullishObject,
  nullishString,
  object,
  objects,
  oneOf,
  optional,
  optionalObject,
  optionalString,
  string,
} from './fields.ts'
import { sampling } from './sampling.ts'

/**
 * The wire shapes of chat completions. Source: OpenAI's published API description (CreateChatCompletionRequest,
 * CreateChatCompletionResponse, CreateChatCompletionStreamResponse) and the fields that vLLM and llama.cpp add.
 * The request schema lists every field that may reach an engine; other fields are dropped, never forwarded.
 */
const TextPart = z.object({ type: z.literal('text'), text: string('The text.') })
const ImagePart = z.object({
  type: z.literal('image_url'),
  image_url: object('The image.', {
    url: string('An http(s) URL, a `data:` URL, or the id of a file (`file-…`).'),
    detail: optional(
      z.enum(['auto', 'low', 'high']),
      'Resolution at which the engine reads the image, where it has a choice. Default: `auto`.',
    ),
  }),
})
const AudioPart = z.object({
  type: z.literal('input_audio'),
  input_audio: object('The audio.', {
    data: string('The audio file in base64, or the id of a stored one (`file-…`).'),
    format: oneOf('Format of the audio file.', ['wav', 'mp3']),
  }),
})
const FilePart = z.object({
  type: z.literal('file'),
  file: object('The file.', {
    file_id: optionalString('Id of a stored text file (`file-…`), whose text the model reads.'),
    file_data: optionalString(
      'The file in base64 or as a `data:` URL. The model reads its text; other files only if the engine takes them.',
    ),
    filename: optionalString('Name of the file.'),
  }),
})
const RefusalPart = z.object({
  type: z.literal('refusal'),
  refusal: string('The refusal that the model gave.'),
})
const Part = z.discriminatedUnion('type', [TextPart, ImagePart, AudioPart, FilePart, RefusalPart])
const Content = z
  .union([z.string(), z.array(Part).min(1)])
  .describe('A text, or a list of parts: text, images, audio and files.')

const ToolCall = namedObject('ToolCall', 'A call of a tool that the model asks for.', {
  id: string('Id of the call. The `tool` message with its result names it as `tool_call_id`.'),
  type: z.literal('function'),
  function: object('The function that the model calls.', {
    name: string('Name of the function to call.'),
    arguments: string('Arguments as JSON text. The model writes them: check them before use.'),
  }),
})

const name = optional(z.string().max(256), 'Name that distinguishes participants of the same role.')
const Message = z
  .discriminatedUnion('role', [
    z.object({ role: z.literal('user'), content: Content, name }),
    z.object({ role: z.literal('system'), content: Content, name }),
    z.object({ role: z.literal('developer'), content: Content, name }),
    z.object({
      role: z.literal('assistant'),
      content: nullish(Content, 'What the model answered; null or absent if it only called tools.'),
      name,
      refusal: nullishString('The refusal that the model gave instead of an answer.'),
      reasoning_content: nullishString('What the model reasoned before it answered.'),
      tool_calls: optional(z.array(ToolCall).max(128), 'Tool calls that the model made in this message.'),
      function_call: nullishObject('Deprecated form of `tool_calls`.', {
        name: string('Name of the function.'),
        arguments: string('Arguments as JSON text.'),
      }),
    }),
    z.object({
      role: z.literal('tool'),
      content: Content.describe('Result of the tool call.'),
      tool_call_id: string('Id of the tool call that this message answers.'),
    }),
    z.object({
      role: z.literal('function'),
      content: nullableString('Result of the function call.'),
      name: string('Name of the function.'),
    }),
  ])
  .meta({ id: 'ChatMessage', description: 'One message of a conversation. Its fields depend on `role`.' })

/** Programs name tools with slashes, colons and spaces too. */
export const toolName = /^\P{Cc}{1,128}$/u

const JsonObject = z.record(z.string(), z.unknown())
const FunctionDefinition = namedObject('FunctionDefinition', 'A function that the model may call.', {
  name: z
    .string()
    .regex(toolName, 'It must have 1 to 128 characters without control characters.')
    .describe('Name of the function, of 1 to 128 characters.'),
  description: optionalString('What the function does. The model decides by it when to call the function.'),
  parameters: optional(JsonObject, 'JSON Schema of the arguments. Default: no arguments.'),
  strict: nullishBoolean(
    'Whether arguments must match the schema exactly, where the engine can enforce it. Default: false.',
  ),
})
const functionName = { name: string('Name of the function.') }

const ResponseFormat = z.discriminatedUnion('type', [
  z.object({ type: z.literal('text') }),
  z.object({ type: z.literal('json_object') }),
  z.object({
    type: z.literal('json_schema'),
    json_schema: object('The schema that the answer follows.', {
      name: z.string().max(64).describe('Name of the schema.'),
      description: optionalString('What the answer is, for the model.'),
      schema: optional(JsonObject, 'JSON Schema of the answer.'),
      strict: nullishBoolean(
        'Whether the answer must match the schema exactly, where the engine can enforce it. Default: false.',
      ),
    }),
  }),
])

export const ChatRequest = namedObject('ChatCompletionRequest', 'A conversation to answer.', {
  model: modelId,
  messages: z.array(Message).min(1).describe('The conversation so far, oldest message first.'),
  ...sampling,
  max_completion_tokens: nullish(
    z.int().min(1),
    'Most tokens to generate, reasoning included. When absent, the engine decides: mostly until the context is full.',
  ),
  max_tokens: nullish(z.int().min(1), 'The same as `max_completion_tokens`, which wins if both are sent.'),
  n: nullish(z.int().min(1).max(128), 'How many answers to generate. Default: 1.'),
  logprobs: nullishBoolean('Whether to return the log probability of each token. Default: false.'),
  top_logprobs: nullish(
    z.int().min(0).max(20),
    'How many of the most likely tokens to return for each position. Needs `logprobs: true`. Default: 0.',
  ),
  tools: nullish(
    z
      .array(
        z.object({
          type: z.literal('function'),
          function: FunctionDefinition,
        }),
      )
      .max(128),
    'Functions that the model may call.',
  ),
  tool_choice: nullish(
    z.union([
      z.enum(['none', 'auto', 'required']),
      z.object({ type: z.literal('function'), function: object('The function to call.', functionName) }),
      z.object({
        type: z.literal('allowed_tools'),
        allowed_tools: object('The functions that may be called.', {
          mode: oneOf('Whether one of them must be called.', ['auto', 'required']),
          tools: array(
            'The functions.',
            z.object({ type: string('`function`.'), function: optionalObject('The function.', functionName) }),
          ),
        }),
      }),
    ]),
    'Whether the model calls tools: `none`, `auto`, `required` (at least one call), the function to call, or those that may be called (`allowed_tools`). Default: `auto` if `tools` has entries.',
  ),
  parallel_tool_calls: nullishBoolean(
    'Whether the model may call several tools in one answer. When absent, the engine decides.',
  ),
  functions: nullish(z.array(FunctionDefinition).max(128), 'Deprecated form of `tools`. Cannot be streamed.'),
  function_call: nullish(
    z.union([z.enum(['none', 'auto']), z.object(functionName)]),
    'Deprecated form of `tool_choice`.',
  ),
  response_format: nullish(
    ResponseFormat,
    'Form of the answer: `text`, any JSON object (`json_object`), or JSON of a schema (`json_schema`). Default: `text`.',
  ),
  reasoning_effort: nullishString(
    'How much a reasoning model thinks before it answers, such as `none`, `low`, `medium` or `high`. Default: the model decides.',
  ),
  truncation: nullish(
    z.enum(['auto', 'disabled']),
    'What happens when the conversation is too long for the model: `auto` leaves out its oldest messages, but no system message and not the last message; `disabled` is an error (default).',
  ),
  metadata: nullish(JsonObject, 'Accepted for compatibility; not stored and not sent to the engine.'),
  chat_template_kwargs: nullish(
    JsonObject,
    'Variables for the chat template of the model, such as `{"enable_thinking": false}`.',
  ),
})
export type ChatRequest = z.output<typeof ChatRequest>

/** The tools of a request that the model may call, and whether it must. */
export interface ToolSelection {
  tools: ChatRequest['tools']
  tool_choice: Exclude<ChatRequest['tool_choice'], { type: 'allowed_tools' }>
}

/** Returns the tools that a request allows: engines know no `allowed_tools`. */
export function toolSelection({ tools, tool_choice }: Pick<ChatRequest, 'tools' | 'tool_choice'>): ToolSelection {
  if (typeof tool_choice !== 'object' || tool_choice?.type !== 'allowed_tools') return { tools, tool_choice }
  const { mode, tools: allowed } = tool_choice.allowed_tools
  const names = new Set(allowed.map(one => one.function?.name))
  return { tools: tools?.filter(tool => names.has(tool.function.name)), tool_choice: mode }
}

const tokens = z.int().min(0)
export const ChatUsage = namedObject('CompletionUsage', 'Token counts of a request.', {
  prompt_tokens: tokens.describe('Tokens of the prompt.'),
  completion_tokens: tokens.describe('Tokens of the answer.'),
  total_tokens: tokens.describe('Sum of both.'),
  prompt_tokens_details: optionalObject('Details of the prompt tokens.', {
    cached_tokens: tokens.describe('Prompt tokens that the engine took from its cache.'),
    audio_tokens: tokens.describe('Prompt tokens that stand for audio.'),
  }),
  completion_tokens_details: optionalObject('Details of the answer tokens.', {
    reasoning_tokens: tokens.describe('Tokens of the reasoning.'),
    audio_tokens: tokens.describe('Answer tokens that stand for audio.'),
    accepted_prediction_tokens: tokens.describe('Predicted tokens that became part of the answer.'),
    rejected_prediction_tokens: tokens.describe('Predicted tokens that did not.'),
  }),
})

export const FinishReason = oneOf(
  'Why generation ended: `stop` is a natural end or a stop text, `length` the token limit.',
  ['stop', 'length', 'tool_calls', 'content_filter', 'function_call'],
)

export const ChatResponse = namedObject('ChatCompletionResponse', 'An answer to a conversation.', {
  id: string('Id of the completion, as the engine gave it.'),
  object: z.literal('chat.completion'),
  created: integer('Unix seconds.'),
  model: string('Id of the model.'),
  choices: objects('The answers: one, or `n`.', {
    index: integer('Position among the choices, from 0.'),
    message: z
      .looseObject({
        role: z.literal('assistant'),
        content: nullableString('The answer; null if the model only called tools.'),
        refusal: nullableString('A refusal in place of an answer, else null.'),
        tool_calls: optional(z.array(ToolCall), 'Tool calls that the model asks for.'),
        reasoning_content: optionalString('What the model reasoned before it answered.'),
        annotations: optional(z.array(z.unknown()), 'Always empty. For compatibility.'),
      })
      .describe('The message that the model generated.'),
    logprobs: z.unknown().describe('Log probabilities of the tokens, with `logprobs: true`; else null.'),
    finish_reason: FinishReason,
  }),
  usage: ChatUsage,
  service_tier: nullishString('Always `default`. For compatibility.'),
  system_fingerprint: optionalString('Names the configuration of the engine, as the engine gave it.'),
})
export type ChatResponse = z.output<typeof ChatResponse>
