import { z } from 'zod'
import {
  array,
  count,
  namedObject,
  nonEmptyText,
  nullish,
  nullishBoolean,
  nullishObject,
  nullishString,
  object,
  oneOf,
  optional,
  optionalString,
  string,
} from '../../schemas/fields.ts'
import { maxStops, stopTexts } from '../../schemas/sampling.ts'

/**
 * The wire shapes of Anthropic's messages. Source: the types of its official client. Content blocks are one schema with
 * all fields: which of them a type needs is checked by the translation, which names unsupported types.
 */
// Not `namedObject`: TypeScript infers the types of schemas that name each other only from `z.object` itself.
const Source = z
  .object({
    type: string(
      '`base64`, `url`, `file`, or for documents `text` and `content`. Documents are not fetched from a `url`.',
    ),
    media_type: optional(z.string().max(256), 'Media type of `data`, such as `image/png`.'),
    data: optionalString('Base64, or the text of a document.'),
    url: optionalString('An http(s) URL of an image.'),
    file_id: optional(z.string().max(256), 'Id of a stored file.'),
    get content() {
      return optional(Content, 'Blocks of a document of the type `content`.')
    },
  })
  .meta({ id: 'AnthropicSource', description: 'Where the bytes or the text of a block are.' })

const Block = z
  .object({
    type: string(
      '`text`, `image`, `document`, `search_result`, `thinking`, `redacted_thinking`, `tool_use`, `tool_result` or `tool_reference`. Others, of tools that Anthropic runs, are left out of the prompt.',
    ),
    text: optionalString('The text of a `text` block.'),
    thinking: optionalString('The reasoning of a `thinking` block.'),
    source: optional(
      z.union([Source, z.string()]),
      'Content of an `image` or `document`; address of a `search_result`.',
    ),
    title: nullishString('Title of a `document` or `search_result`.'),
    context: nullishString('What the model should know about a `document`.'),
    id: optional(z.string().max(256), 'Id of a `tool_use`.'),
    name: optional(z.string().max(256), 'Name of the tool of a `tool_use`.'),
    input: optional(z.record(z.string(), z.unknown()), 'Arguments of a `tool_use`.'),
    tool_name: optional(z.string().max(256), 'Name of the tool of a `tool_reference`.'),
    tool_use_id: optional(z.string().max(256), 'Id of the `tool_use` that a `tool_result` answers.'),
    is_error: nullishBoolean('Whether the tool of a `tool_result` failed. Default: false.'),
    get content() {
      return optional(Content, 'Content of a `tool_result` or `search_result`.')
    },
  })
  .meta({ id: 'AnthropicBlock', description: 'A piece of a message. Its fields depend on `type`.' })
export type AnthropicBlock = z.output<typeof Block>

const Content: z.ZodUnion<readonly [z.ZodString, z.ZodArray<typeof Block>]> = z
  .union([z.string(), z.array(Block)])
  .meta({ id: 'AnthropicContent', description: 'A text or a list of blocks.' })

const Tool = namedObject('AnthropicTool', 'A tool that the model may use and the caller runs.', {
  type: nullishString(
    '`custom`, the default. Tools that Anthropic runs or defines are left out, and named in `x-infer-ignored`.',
  ),
  name: z.string().max(256).describe('Name of the tool.'),
  description: nullishString('What the tool does. The model decides by it when to use the tool.'),
  input_schema: optional(z.record(z.string(), z.unknown()), 'JSON Schema of the arguments.'),
  strict: nullishBoolean(
    'Whether arguments must match the schema exactly, where the engine can enforce it. Default: false.',
  ),
})

const conversation = {
  model: nonEmptyText.max(256).describe('Id of the model, as in `GET /anthropic/v1/models`.'),
  messages: z
    .array(
      z.object({
        role: oneOf('Who wrote the message.', ['user', 'assistant', 'system']),
        content: Content.describe('A text or a list of blocks.'),
      }),
    )
    .min(1)
    .describe('The conversation so far, oldest message first.'),
  system: nullish(Content, 'The system prompt: a text or a list of text blocks.'),
  tools: nullish(z.array(Tool).max(128), 'Tools that the model may use.'),
  tool_choice: nullishObject('How the model chooses tools. Default: `auto`.', {
    type: oneOf('`any`: the model must use a tool; `tool`: that one.', ['auto', 'any', 'tool', 'none']),
    name: optionalString('Name of the tool, with the type `tool`.'),
    disable_parallel_tool_use: nullishBoolean('Whether at most one tool is used. Default: false.'),
  }),
  thinking: nullishObject('Reasoning. When absent, the model decides.', {
    type: oneOf('Whether the model reasons before it answers.', ['enabled', 'adaptive', 'disabled']),
    budget_tokens: nullish(
      z.int().min(1),
      'Becomes a reasoning effort: below 4096 `low`, below 16384 `medium`, else `high`.',
    ),
  }),
  output_config: nullishObject('Effort and form of the answer.', {
    effort: nullish(z.string().max(16), '`low`, `medium` or `high`; `xhigh` and `max` count as `high`.'),
    format: nullishObject('Form of the answer. Default: text.', {
      type: z.literal('json_schema'),
      schema: z.record(z.string(), z.unknown()).describe('JSON Schema of the answer.'),
    }),
  }),
}

/** The body of a count of tokens. */
export const AnthropicCountRequest = namedObject(
  'AnthropicCountTokensRequest',
  'A conversation whose tokens are counted.',
  conversation,
)

export const AnthropicRequest = namedObject(
  'AnthropicMessagesRequest',
  'A conversation to answer. `cache_control` is accepted and has no effect: engines cache by themselves.',
  {
    ...conversation,
    max_tokens: z.int().min(1).describe('Most tokens to generate, reasoning included.'),
    stream: nullishBoolean('Whether to send the answer as server-sent events. Default: false.'),
    stop_sequences: nullish(z.array(z.string()).max(maxStops), stopTexts),
    temperature: nullish(z.number().min(0).max(2), 'Randomness. When absent, the engine decides.'),
    top_p: nullish(z.number().min(0).max(1), 'Nucleus of likely tokens. When absent, the engine decides.'),
    top_k: nullish(z.int().min(0), 'Number of likely tokens. When absent, the engine decides.'),
    metadata: nullishObject('Accepted for compatibility.', {
      user_id: nullishString('Your own id of the end user; not sent to the engine.'),
    }),
    service_tier: nullishString('Accepted for compatibility; has no effect.'),
    mcp_servers: nullish(z.array(z.unknown()), 'Left out: this server calls no MCP servers here.'),
    container: optional(z.unknown(), 'Left out: there are no containers.'),
  },
)
export type AnthropicRequest = z.output<typeof AnthropicRequest>

export const AnthropicMessage = namedObject('AnthropicMessage', 'An answer in the form of Anthropic.', {
  id: string('Id of the message.'),
  type: z.literal('message'),
  role: z.literal('assistant'),
  model: string('Id of the model.'),
  content: array(
    'Reasoning, text and uses of tools, in this order.',
    z.looseObject({ type: string('`thinking`, `text` or `tool_use`.') }),
  ),
  stop_reason: oneOf('Why generation ended. A stop sequence ends with `end_turn`: engines do not report which.', [
    'end_turn',
    'max_tokens',
    'tool_use',
    'refusal',
  ]),
  stop_sequence: z.null().describe('Always null.'),
  usage: object('Token counts.', {
    input_tokens: count('Tokens of the prompt that were not cached.'),
    cache_creation_input_tokens: count('Always 0: writing to the cache of an engine costs nothing.'),
    cache_read_input_tokens: count('Tokens of the prompt that the engine took from its cache.'),
    output_tokens: count('Tokens of the answer.'),
    service_tier: z.literal('standard').describe('For compatibility.'),
  }),
})

export const AnthropicCount = namedObject('AnthropicTokenCount', 'Tokens of a conversation.', {
  input_tokens: count('Estimated tokens of the prompt: one for each three bytes of text.'),
})
