import { z } from 'zod'
import { notImplemented } from '../../schemas/not-implemented.ts'

/** The wire shapes of Cohere's chat (v2). Source: the types of its official client. */
const JsonObject = z.record(z.string(), z.unknown())
const Part = z
  .object({
    type: z.enum(['text', 'image_url', 'thinking', 'document']).describe('Kind of the part.'),
    text: z.string().optional().describe('The text of a `text` part.'),
    thinking: z.string().optional().describe('The reasoning of a `thinking` part.'),
    image_url: z
      .object({
        url: z.string().describe('An http(s) URL or a `data:` URL.'),
        detail: z.enum(['auto', 'low', 'high']).optional().describe('Resolution at which the engine reads it.'),
      })
      .optional()
      .describe('The image of an `image_url` part.'),
    document: z
      .object({
        data: z.union([z.string(), JsonObject]).describe('Text or fields of the document.'),
        id: z.string().optional().describe('Id of the document.'),
      })
      .optional()
      .describe('The document of a `document` part, in the result of a tool.'),
  })
  .meta({ id: 'CohereContent', description: 'A part of a message. Its fields depend on `type`.' })
export type CoherePart = z.output<typeof Part>

const ToolCall = z.object({
  id: z.string().describe('Id of the call.'),
  type: z.literal('function').optional(),
  function: z
    .object({
      name: z.string().describe('Name of the tool.'),
      arguments: z.string().describe('Arguments as JSON text.'),
    })
    .describe('The function that is called.'),
})

const Message = z
  .object({
    role: z.enum(['user', 'assistant', 'system', 'tool']).describe('Who wrote the message.'),
    content: z
      .union([z.string(), z.array(Part)])
      .nullish()
      .describe('A text or a list of parts.'),
    tool_calls: z.array(ToolCall).max(128).nullish().describe('Tools that the assistant called.'),
    tool_plan: z.string().nullish().describe('What the assistant said before it called tools.'),
    tool_call_id: z.string().optional().describe('Id of the call that a message of the role `tool` answers.'),
  })
  .meta({ id: 'CohereMessage', description: 'One message of a conversation.' })
export type CohereMessage = z.output<typeof Message>

const sampled = 'When absent, the engine decides.'

export const CohereChatRequest = z
  .object({
    model: z.string().min(1).max(256).describe('Id of the model, as in `GET /std/v1/models`.'),
    messages: z.array(Message).min(1).describe('The conversation so far, oldest message first.'),
    documents: z
      .array(
        z.union([
          z.string(),
          z.object({
            data: z.record(z.string(), z.unknown()).describe('Fields of the document, such as `title` and `text`.'),
            id: z.string().optional().describe('Id of the document.'),
          }),
        ]),
      )
      .max(1000)
      .nullish()
      .describe('Documents that the model reads before it answers, as part of the system message.'),
    tools: z
      .array(
        z.object({
          type: z.literal('function').optional(),
          function: z
            .object({
              name: z.string().describe('Name of the tool.'),
              description: z.string().optional().describe('What the tool does.'),
              parameters: JsonObject.optional().describe('JSON Schema of the arguments.'),
            })
            .describe('The function.'),
        }),
      )
      .max(128)
      .nullish()
      .describe('Tools that the model may call and the caller runs.'),
    tool_choice: z.enum(['REQUIRED', 'NONE']).nullish().describe('Whether a tool must or must not be called.'),
    strict_tools: z.boolean().nullish().describe('Whether arguments must match the schemas exactly. Default: false.'),
    response_format: z
      .object({
        type: z.enum(['text', 'json_object']).describe('`json_object` for JSON.'),
        json_schema: JsonObject.nullish().describe('JSON Schema of the answer. Default: any object.'),
      })
      .nullish()
      .describe('Form of the answer. Default: text.'),
    thinking: z
      .object({
        type: z.enum(['enabled', 'disabled']).describe('Whether the model reasons before it answers.'),
        token_budget: z
          .int()
          .min(1)
          .nullish()
          .describe('Becomes a reasoning effort: below 4096 `low`, below 16384 `medium`, else `high`.'),
      })
      .nullish()
      .describe('Reasoning. When absent, the model decides.'),
    stream: z.boolean().nullish().describe('Whether to send the answer as server-sent events. Default: false.'),
    max_tokens: z.int().min(1).nullish().describe('Most tokens to generate.'),
    stop_sequences: z.array(z.string()).max(4).nullish().describe('Up to 4 texts at which generation stops.'),
    temperature: z.number().min(0).max(2).nullish().describe(`Randomness. ${sampled}`),
    seed: z.int().nullish().describe('Seed of the random choice. Default: random.'),
    frequency_penalty: z.number().min(0).max(2).nullish().describe('Above 0: tokens that occurred are less likely.'),
    presence_penalty: z.number().min(0).max(2).nullish().describe('The same, however often they occurred.'),
    k: z.int().min(0).max(500).nullish().describe(`Number of likely tokens; 0 is no limit. ${sampled}`),
    p: z.number().min(0).max(1).nullish().describe(`Nucleus of likely tokens. ${sampled}`),
    priority: z.int().nullish().describe('Passed to the engine, for engines that schedule by priority. Default: 0.'),
    logprobs: notImplemented,
  })
  .meta({
    id: 'CohereChatRequest',
    description: 'A conversation to answer. `citation_options` and `safety_mode` are accepted and have no effect.',
  })
export type CohereChatRequest = z.output<typeof CohereChatRequest>

const tokens = z.object({
  input_tokens: z.int().describe('Tokens of the prompt.'),
  output_tokens: z.int().describe('Tokens of the answer.'),
})

export const CohereChatResponse = z
  .object({
    id: z.string().describe('Id of the answer.'),
    finish_reason: z.enum(['COMPLETE', 'MAX_TOKENS', 'TOOL_CALL', 'ERROR']).describe('Why generation ended.'),
    message: z
      .object({
        role: z.literal('assistant'),
        content: z
          .array(z.looseObject({ type: z.string().describe('`thinking` or `text`.') }))
          .optional()
          .describe('Reasoning and text.'),
        tool_calls: z.array(ToolCall).optional().describe('Tools to call.'),
        citations: z.array(z.unknown()).optional().describe('Always empty: engines do not cite.'),
      })
      .describe('The answer.'),
    usage: z
      .object({
        billed_units: tokens.describe('The same as `tokens`.'),
        tokens: tokens.describe('Token counts.'),
        cached_tokens: z.int().describe('Tokens of the prompt that the engine took from its cache.'),
      })
      .describe('What was used.'),
  })
  .meta({ id: 'CohereChatResponse', description: 'An answer in the form of Cohere.' })
