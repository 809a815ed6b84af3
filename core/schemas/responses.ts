import { z } from 'zod'
import { JsonRecord, sentItems } from './responses-items.ts'

/**
 * The wire shapes of responses. Source: OpenAI's published API description (CreateResponse, Response). Fields without a
 * meaning here are accepted and dropped; those that would change the answer are refused by name.
 */
const accepted = (of: z.ZodType) => of.nullish().describe('Accepted for compatibility; has no effect.')

const includable = [
  'message.output_text.logprobs',
  'reasoning.encrypted_content',
  'message.input_image.image_url',
  'file_search_call.results',
  'web_search_call.results',
  'web_search_call.action.sources',
  'computer_call_output.output.image_url',
  'code_interpreter_call.outputs',
] as const

const Format = z.discriminatedUnion('type', [
  z.object({ type: z.literal('text') }),
  z.object({ type: z.literal('json_object') }),
  z.object({
    type: z.literal('json_schema'),
    name: z.string().max(64).describe('Name of the schema.'),
    description: z.string().nullish().describe('What the answer is, for the model.'),
    schema: JsonRecord.describe('JSON Schema of the answer.'),
    strict: z
      .boolean()
      .nullish()
      .describe('Whether the answer must match the schema exactly, where the engine can enforce it. Default: false.'),
  }),
])

export const ResponsesRequest = z
  .object({
    model: z.string().min(1).max(256).describe('Id of the model, as in `GET /std/v1/models`.'),
    input: z
      .union([z.string(), z.array(sentItems).min(1)])
      .describe('A text of the user, or a list of items: messages, tool calls, results of tools and reasoning.'),
    instructions: z.string().nullish().describe('System message before the input.'),
    max_output_tokens: z
      .int()
      .min(1)
      .nullish()
      .describe('Most tokens to generate, reasoning included. An answer that reaches it has the status `incomplete`.'),
    temperature: z.number().min(0).max(2).nullish().describe('Randomness. When absent, the engine decides.'),
    top_p: z.number().min(0).max(1).nullish().describe('Nucleus of likely tokens. When absent, the engine decides.'),
    top_logprobs: z
      .int()
      .min(0)
      .max(20)
      .nullish()
      .describe('How many of the most likely tokens to return for each position, with their log probabilities.'),
    tools: z
      .array(
        z.looseObject({
          type: z.string().describe('`function`. The tools that OpenAI runs itself are not available here.'),
          name: z.string().optional().describe('Name of the function: 1 to 64 letters, digits, `_`, `.` and `-`.'),
          description: z.string().nullish().describe('What the function does.'),
          parameters: JsonRecord.nullish().describe('JSON Schema of the arguments. Default: no arguments.'),
          strict: z.boolean().nullish().describe('Whether arguments must match the schema exactly. Default: false.'),
        }),
      )
      .max(128)
      .nullish()
      .describe('Functions that the model may call.'),
    tool_choice: z
      .union([
        z.enum(['none', 'auto', 'required']),
        z.looseObject({
          type: z.string().describe('`function` or `allowed_tools`.'),
          name: z.string().optional().describe('Name of the function.'),
          mode: z.enum(['auto', 'required']).optional().describe('Whether one of the allowed tools must be called.'),
          tools: z.array(JsonRecord).optional().describe('Functions that are allowed, such as `{type, name}`.'),
        }),
      ])
      .nullish()
      .describe('Whether the model calls tools. Default: `auto`.'),
    parallel_tool_calls: z
      .boolean()
      .nullish()
      .describe('Whether the model may call several tools in one answer. When absent, the engine decides.'),
    text: z
      .object({
        format: Format.nullish().describe('Form of the answer. Default: `text`.'),
        verbosity: accepted(z.enum(['low', 'medium', 'high'])),
      })
      .nullish()
      .describe('Form of the text.'),
    reasoning: z
      .object({
        effort: z
          .string()
          .nullish()
          .describe('How much a reasoning model thinks, such as `none`, `low`, `medium` or `high`.'),
        summary: z
          .enum(['auto', 'concise', 'detailed'])
          .nullish()
          .describe('With any value the reasoning is sent as its summary, unabridged: engines do not summarize.'),
        generate_summary: z.enum(['auto', 'concise', 'detailed']).nullish().describe('Deprecated form of `summary`.'),
      })
      .nullish()
      .describe('Options of reasoning models.'),
    include: z
      .array(z.enum(includable))
      .nullish()
      .describe(
        '`message.output_text.logprobs`, and `reasoning.encrypted_content`: the reasoning as base64, so that clients send it back. Others have no effect.',
      ),
    stream: z.boolean().nullish().describe('Whether to send the answer as typed server-sent events. Default: false.'),
    metadata: z.record(z.string().max(64), z.string().max(512)).nullish().describe('Returned with the response.'),
    store: z
      .boolean()
      .nullish()
      .describe('Responses are not stored: the answer says `store: false`. Send the whole conversation as `input`.'),
    previous_response_id: z.string().nullish().describe('Not supported: send the items of the earlier response.'),
    background: z.boolean().nullish().describe('Only false. Submit a background job with `POST /api/jobs`.'),
    truncation: z
      .enum(['auto', 'disabled'])
      .nullish()
      .describe('An input that is too long is always an error, as with `disabled`.'),
    conversation: z.unknown().optional().describe('Not supported: send the items of the conversation as `input`.'),
    prompt: z.unknown().optional().describe('Not supported: send the text of the prompt.'),
    user: z.string().nullish().describe('Your own id of the end user; not sent to the engine.'),
    safety_identifier: z.string().nullish().describe('Your own id of the end user; not sent to the engine.'),
    prompt_cache_key: z.string().nullish().describe('Accepted for compatibility: engines cache by themselves.'),
    prompt_cache_retention: accepted(z.string()),
    service_tier: accepted(z.string()),
    stream_options: accepted(z.looseObject({})),
    max_tool_calls: accepted(z.int()),
  })
  .meta({ id: 'ResponsesRequest', description: 'A conversation to answer, in the form of OpenAI responses.' })
export type ResponsesRequest = z.output<typeof ResponsesRequest>
