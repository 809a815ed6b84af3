import { z } from 'zod'
import { integer, modelId, omittable, optional, optionalBoolean, optionalText, text } from '../../schemas/fields.ts'
import { sampling } from '../../schemas/sampling.ts'

/**
 * The wire shapes of responses. Source: OpenAI's published API description (CreateResponse, Response). Clients send null
 * for what they leave out.
 */
const ResponsePart = z
  .object({
    type: text('`input_text`, `input_image`, `input_file`, `input_audio`; in answers `output_text`, `refusal`.'),
    text: optionalText('The text.'),
    refusal: optionalText('The refusal.'),
    image_url: optionalText('An http(s) or `data:` URL of an image.'),
    detail: optionalText('Resolution at which the engine reads the image: `auto`, `low` or `high`.'),
    file_id: optionalText('Id of an uploaded file (`file-…`).'),
    file_data: optionalText('The file as a `data:` URL or in base64.'),
    file_url: optionalText('Not supported: upload the file.'),
    filename: optionalText('Name of the file.'),
    input_audio: optional(
      z.object({ data: text('The audio in base64.'), format: text('`wav` or `mp3`.') }),
      'The audio.',
    ),
  })
  .meta({ id: 'ResponseContentPart', description: 'A part of a message. Its fields depend on `type`.' })
export type ResponsePart = z.output<typeof ResponsePart>

const parts = z.union([z.string(), z.array(ResponsePart)])

export const ResponseItem = z
  .object({
    type: optionalText(
      '`message` (default), `function_call`, `function_call_output`, `reasoning` or `item_reference`.',
    ),
    id: optionalText('Id of the item. An `item_reference` names an item of a stored response by it.'),
    status: optionalText('`in_progress`, `completed` or `incomplete`.'),
    role: optionalText('Of a message: `user`, `assistant`, `system` or `developer`.'),
    content: optional(parts, 'Content of a message, or the text of a reasoning item.'),
    call_id: optionalText('Id of a function call; its output names the same id.'),
    name: optionalText('Name of the function.'),
    arguments: optionalText('Arguments of the function call, as JSON text.'),
    output: optional(parts, 'What the function returned.'),
    summary: optional(z.array(ResponsePart), 'Summary of a reasoning item.'),
    encrypted_content: optionalText('Accepted for compatibility; has no effect.'),
  })
  .meta({ id: 'ResponseItem', description: 'An item of a conversation. Its fields depend on `type`.' })
export type ResponseItem = z.output<typeof ResponseItem>

const ResponseTool = z
  .object({
    type: text('`function`: the tools of OpenAI do not exist here.'),
    name: optionalText('Name of the function: 1 to 64 letters, digits, `_`, `.` and `-`.'),
    description: optionalText('What the function does. The model decides by it when to call the function.'),
    parameters: optional(z.record(z.string(), z.unknown()), 'JSON Schema of the arguments.'),
    strict: optionalBoolean('Whether arguments must match the schema exactly, where the engine can.'),
  })
  .meta({ id: 'ResponseTool', description: 'A function that the model may call.' })
export type ResponseTool = z.output<typeof ResponseTool>

const ToolChoice = z.union([
  z.string(),
  z.object({
    type: text('`function` or `allowed_tools`.'),
    name: optionalText('Name of the function to call.'),
    mode: optionalText('Of `allowed_tools`: `auto` or `required`.'),
    tools: optional(
      z.array(z.object({ type: text('`function`.'), name: optionalText('Name of the function.') })),
      'The tools that may be called.',
    ),
  }),
])

const Format = z.object({
  type: z.enum(['text', 'json_object', 'json_schema']).describe('`text`, any JSON object, or JSON of a schema.'),
  name: optionalText('Name of the schema.'),
  description: optionalText('What the answer is, for the model.'),
  schema: optional(z.record(z.string(), z.unknown()), 'JSON Schema of the answer.'),
  strict: optionalBoolean('Whether the answer must match the schema exactly, where the engine can.'),
})

export const ResponseRequest = z
  .object({
    model: modelId,
    input: z
      .union([z.string(), z.array(ResponseItem)])
      .describe('A text of the user, or the items of the conversation, oldest first.'),
    instructions: optionalText('A system message before the conversation. Later responses do not inherit it.'),
    previous_response_id: optionalText('Id of a stored response that this one continues.'),
    store: optionalBoolean('Whether to keep the response, so that it can be read and continued. Default: true.'),
    background: optionalBoolean('Whether to answer at once and run as a durable job. Needs `store`. Default: false.'),
    stream: sampling.stream,
    max_output_tokens: optional(z.int().min(1), 'Most tokens to generate, reasoning included.'),
    temperature: sampling.temperature,
    top_p: sampling.top_p,
    top_logprobs: optional(z.int().min(0).max(20), 'How many of the most likely tokens to return for each position.'),
    tools: optional(z.array(ResponseTool).max(128), 'Functions that the model may call.'),
    tool_choice: optional(
      ToolChoice,
      'Whether the model calls tools: `none`, `auto`, `required`, a function, or a list of allowed functions.',
    ),
    parallel_tool_calls: optionalBoolean('Whether the model may call several tools in one answer.'),
    text: optional(
      z.object({
        format: optional(Format, 'Form of the answer. Default: text.'),
        verbosity: optionalText('Accepted for compatibility; has no effect.'),
      }),
      'How the model answers.',
    ),
    reasoning: optional(
      z.object({
        effort: optionalText('How much a reasoning model thinks, such as `none`, `low`, `medium` or `high`.'),
        summary: optionalText(
          'If set, the reasoning is in `summary` of its item, where most clients look for it, else in `content`.',
        ),
        generate_summary: optionalText('Deprecated form of `summary`.'),
      }),
      'How a reasoning model reasons.',
    ),
    truncation: optional(
      z.enum(['auto', 'disabled']),
      'What happens when the conversation is too long for the model: `auto` leaves out its oldest items, but neither instructions nor the last item; `disabled` is an error (default).',
    ),
    metadata: optional(z.record(z.string(), z.string()), 'Up to 16 names and values of your own.'),
    include: optional(
      z.array(z.string()),
      '`message.output_text.logprobs` adds log probabilities; other values have no effect.',
    ),
    conversation: omittable(z.unknown(), 'Not supported: send `previous_response_id`.'),
    prompt: omittable(z.unknown(), 'Not supported: send `instructions` and `input`.'),
    user: sampling.user,
  })
  .meta({ id: 'ResponseRequest', description: 'A conversation to answer.' })
export type ResponseRequest = z.output<typeof ResponseRequest>

/** A response, as it is answered. */
export const ResponseObject = z
  .looseObject({
    id: text('Id of the response: `resp_…`.'),
    object: z.literal('response'),
    created_at: integer('Unix seconds.'),
    status: z
      .enum(['queued', 'in_progress', 'completed', 'incomplete', 'failed', 'cancelled'])
      .describe('State; `incomplete` if the token limit ended the answer.'),
    model: text('Id of the model.'),
    output: z
      .array(z.looseObject({}))
      .describe('The items that the model generated: reasoning, a message, function calls.'),
    error: z
      .object({ code: text('Code of the error.'), message: text('What happened.') })
      .nullable()
      .describe('Why it failed; else null.'),
    incomplete_details: z
      .object({ reason: text('`max_output_tokens` or `content_filter`.') })
      .nullable()
      .describe('Why it is incomplete; else null.'),
    store: z.boolean().describe('Whether it is kept. False too if its input is larger than 4 MB.'),
    usage: omittable(
      z.object({
        input_tokens: integer('Tokens of the input.'),
        input_tokens_details: z
          .object({ cached_tokens: integer('Those from a cache.'), cache_write_tokens: z.literal(0) })
          .describe('Details.'),
        output_tokens: integer('Tokens of the answer.'),
        output_tokens_details: z.object({ reasoning_tokens: integer('Those of the reasoning.') }).describe('Details.'),
        total_tokens: integer('Sum of both.'),
      }),
      'Token counts; absent before the end.',
    ),
  })
  .meta({ id: 'Response', description: "A response, with all members of OpenAI's; those listed here have a meaning." })
