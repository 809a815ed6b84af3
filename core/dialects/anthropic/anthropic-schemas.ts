import { z } from 'zod'

/**
 * The wire shapes of Anthropic's messages. Source: the types of its official client. Content blocks are one schema with
 * all fields: which of them a type needs is checked by the translation, which names unsupported types.
 */
const Source = z
  .object({
    type: z
      .string()
      .describe(
        '`base64`, `url`, `file`, or for documents `text` and `content`. Documents are not fetched from a `url`.',
      ),
    media_type: z.string().max(256).optional().describe('Media type of `data`, such as `image/png`.'),
    data: z.string().optional().describe('Base64, or the text of a document.'),
    url: z.string().optional().describe('An http(s) URL of an image.'),
    file_id: z.string().max(256).optional().describe('Id of a stored file.'),
    get content() {
      return Content.optional().describe('Blocks of a document of the type `content`.')
    },
  })
  .meta({ id: 'AnthropicSource', description: 'Where the bytes or the text of a block are.' })

const Block = z
  .object({
    type: z
      .string()
      .describe(
        '`text`, `image`, `document`, `search_result`, `thinking`, `redacted_thinking`, `tool_use` or `tool_result`.',
      ),
    text: z.string().optional().describe('The text of a `text` block.'),
    thinking: z.string().optional().describe('The reasoning of a `thinking` block.'),
    source: z
      .union([Source, z.string()])
      .optional()
      .describe('Content of an `image` or `document`; address of a `search_result`.'),
    title: z.string().nullish().describe('Title of a `document` or `search_result`.'),
    context: z.string().nullish().describe('What the model should know about a `document`.'),
    id: z.string().max(256).optional().describe('Id of a `tool_use`.'),
    name: z.string().max(256).optional().describe('Name of the tool of a `tool_use`.'),
    input: z.record(z.string(), z.unknown()).optional().describe('Arguments of a `tool_use`.'),
    tool_use_id: z.string().max(256).optional().describe('Id of the `tool_use` that a `tool_result` answers.'),
    is_error: z.boolean().nullish().describe('Whether the tool of a `tool_result` failed. Default: false.'),
    get content() {
      return Content.optional().describe('Content of a `tool_result` or `search_result`.')
    },
  })
  .meta({ id: 'AnthropicBlock', description: 'A piece of a message. Its fields depend on `type`.' })
export type AnthropicBlock = z.output<typeof Block>

const Content: z.ZodUnion<readonly [z.ZodString, z.ZodArray<typeof Block>]> = z
  .union([z.string(), z.array(Block)])
  .meta({ id: 'AnthropicContent', description: 'A text or a list of blocks.' })

const Tool = z
  .object({
    type: z.string().nullish().describe('`custom`, the default. Tools that Anthropic runs or defines are refused.'),
    name: z.string().max(256).describe('Name of the tool.'),
    description: z.string().nullish().describe('What the tool does. The model decides by it when to use the tool.'),
    input_schema: z.record(z.string(), z.unknown()).optional().describe('JSON Schema of the arguments.'),
    strict: z
      .boolean()
      .nullish()
      .describe('Whether arguments must match the schema exactly, where the engine can enforce it. Default: false.'),
  })
  .meta({ id: 'AnthropicTool', description: 'A tool that the model may use and the caller runs.' })

const conversation = {
  model: z.string().min(1).max(256).describe('Id of the model, as in `GET /anthropic/v1/models`.'),
  messages: z
    .array(
      z.object({
        role: z.enum(['user', 'assistant', 'system']).describe('Who wrote the message.'),
        content: Content.describe('A text or a list of blocks.'),
      }),
    )
    .min(1)
    .describe('The conversation so far, oldest message first.'),
  system: Content.nullish().describe('The system prompt: a text or a list of text blocks.'),
  tools: z.array(Tool).max(128).nullish().describe('Tools that the model may use.'),
  tool_choice: z
    .object({
      type: z.enum(['auto', 'any', 'tool', 'none']).describe('`any`: the model must use a tool; `tool`: that one.'),
      name: z.string().optional().describe('Name of the tool, with the type `tool`.'),
      disable_parallel_tool_use: z.boolean().nullish().describe('Whether at most one tool is used. Default: false.'),
    })
    .nullish()
    .describe('How the model chooses tools. Default: `auto`.'),
  thinking: z
    .object({
      type: z.enum(['enabled', 'adaptive', 'disabled']).describe('Whether the model reasons before it answers.'),
      budget_tokens: z
        .int()
        .min(1)
        .nullish()
        .describe('Becomes a reasoning effort: below 4096 `low`, below 16384 `medium`, else `high`.'),
    })
    .nullish()
    .describe('Reasoning. When absent, the model decides.'),
  output_config: z
    .object({
      effort: z.string().max(16).nullish().describe('`low`, `medium` or `high`; `xhigh` and `max` count as `high`.'),
      format: z
        .object({
          type: z.literal('json_schema'),
          schema: z.record(z.string(), z.unknown()).describe('JSON Schema of the answer.'),
        })
        .nullish()
        .describe('Form of the answer. Default: text.'),
    })
    .nullish()
    .describe('Effort and form of the answer.'),
}

/** The body of a count of tokens. */
export const AnthropicCountRequest = z
  .object(conversation)
  .meta({ id: 'AnthropicCountTokensRequest', description: 'A conversation whose tokens are counted.' })

export const AnthropicRequest = z
  .object({
    ...conversation,
    max_tokens: z.int().min(1).describe('Most tokens to generate, reasoning included.'),
    stream: z.boolean().nullish().describe('Whether to send the answer as server-sent events. Default: false.'),
    stop_sequences: z.array(z.string()).max(4).nullish().describe('Up to 4 texts at which generation stops.'),
    temperature: z.number().min(0).max(2).nullish().describe('Randomness. When absent, the engine decides.'),
    top_p: z.number().min(0).max(1).nullish().describe('Nucleus of likely tokens. When absent, the engine decides.'),
    top_k: z.int().min(0).nullish().describe('Number of likely tokens. When absent, the engine decides.'),
    metadata: z
      .object({ user_id: z.string().nullish().describe('Your own id of the end user; not sent to the engine.') })
      .nullish()
      .describe('Accepted for compatibility.'),
    service_tier: z.string().nullish().describe('Accepted for compatibility; has no effect.'),
    mcp_servers: z
      .array(z.unknown())
      .max(0)
      .nullish()
      .describe('Not supported: this server calls no MCP servers here.'),
    container: z.null().optional().describe('Not supported: there are no containers.'),
  })
  .meta({
    id: 'AnthropicMessagesRequest',
    description:
      'A conversation to answer. `cache_control` is accepted and has no effect: engines cache by themselves.',
  })
export type AnthropicRequest = z.output<typeof AnthropicRequest>

const count = (of: string) => z.int().min(0).describe(of)

export const AnthropicMessage = z
  .object({
    id: z.string().describe('Id of the message.'),
    type: z.literal('message'),
    role: z.literal('assistant'),
    model: z.string().describe('Id of the model.'),
    content: z
      .array(z.looseObject({ type: z.string().describe('`thinking`, `text` or `tool_use`.') }))
      .describe('Reasoning, text and uses of tools, in this order.'),
    stop_reason: z
      .enum(['end_turn', 'max_tokens', 'tool_use', 'refusal'])
      .describe('Why generation ended. A stop sequence ends with `end_turn`: engines do not report which.'),
    stop_sequence: z.null().describe('Always null.'),
    usage: z
      .object({
        input_tokens: count('Tokens of the prompt that were not cached.'),
        cache_creation_input_tokens: count('Always 0: writing to the cache of an engine costs nothing.'),
        cache_read_input_tokens: count('Tokens of the prompt that the engine took from its cache.'),
        output_tokens: count('Tokens of the answer.'),
        service_tier: z.literal('standard').describe('For compatibility.'),
      })
      .describe('Token counts.'),
  })
  .meta({ id: 'AnthropicMessage', description: 'An answer in the form of Anthropic.' })

export const AnthropicCount = z
  .object({ input_tokens: count('Estimated tokens of the prompt: one for each three bytes of text.') })
  .meta({ id: 'AnthropicTokenCount', description: 'Tokens of a conversation.' })
