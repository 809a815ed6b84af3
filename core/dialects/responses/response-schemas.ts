import { z } from 'zod'
import { sampling } from '../../schemas/sampling.ts'

/**
 * The wire shapes of responses. Source: OpenAI's published API description (CreateResponse, Response). Clients send null
 * for what they leave out.
 */
const text = z.string().nullish()

const ResponsePart = z
  .object({
    type: z
      .string()
      .describe('`input_text`, `input_image`, `input_file`, `input_audio`; in answers `output_text`, `refusal`.'),
    text: text.describe('The text.'),
    refusal: text.describe('The refusal.'),
    image_url: text.describe('An http(s) or `data:` URL of an image.'),
    detail: text.describe('Resolution at which the engine reads the image: `auto`, `low` or `high`.'),
    file_id: text.describe('Id of an uploaded file (`file-…`).'),
    file_data: text.describe('The file as a `data:` URL or in base64.'),
    file_url: text.describe('Not supported: upload the file.'),
    filename: text.describe('Name of the file.'),
    input_audio: z
      .object({ data: z.string().describe('The audio in base64.'), format: z.string().describe('`wav` or `mp3`.') })
      .nullish()
      .describe('The audio.'),
  })
  .meta({ id: 'ResponseContentPart', description: 'A part of a message. Its fields depend on `type`.' })
export type ResponsePart = z.output<typeof ResponsePart>

const parts = z.union([z.string(), z.array(ResponsePart)])

export const ResponseItem = z
  .object({
    type: text.describe(
      '`message` (default), `function_call`, `function_call_output`, `reasoning` or `item_reference`.',
    ),
    id: text.describe('Id of the item. An `item_reference` names an item of a stored response by it.'),
    status: text.describe('`in_progress`, `completed` or `incomplete`.'),
    role: text.describe('Of a message: `user`, `assistant`, `system` or `developer`.'),
    content: parts.nullish().describe('Content of a message, or the text of a reasoning item.'),
    call_id: text.describe('Id of a function call; its output names the same id.'),
    name: text.describe('Name of the function.'),
    arguments: text.describe('Arguments of the function call, as JSON text.'),
    output: parts.nullish().describe('What the function returned.'),
    summary: z.array(ResponsePart).nullish().describe('Summary of a reasoning item.'),
    encrypted_content: text.describe('Accepted for compatibility; has no effect.'),
  })
  .meta({ id: 'ResponseItem', description: 'An item of a conversation. Its fields depend on `type`.' })
export type ResponseItem = z.output<typeof ResponseItem>

const ResponseTool = z
  .object({
    type: z.string().describe('`function`: the tools of OpenAI do not exist here.'),
    name: text.describe('Name of the function: 1 to 64 letters, digits, `_`, `.` and `-`.'),
    description: text.describe('What the function does. The model decides by it when to call the function.'),
    parameters: z.record(z.string(), z.unknown()).nullish().describe('JSON Schema of the arguments.'),
    strict: z.boolean().nullish().describe('Whether arguments must match the schema exactly, where the engine can.'),
  })
  .meta({ id: 'ResponseTool', description: 'A function that the model may call.' })
export type ResponseTool = z.output<typeof ResponseTool>

const ToolChoice = z.union([
  z.string(),
  z.object({
    type: z.string().describe('`function` or `allowed_tools`.'),
    name: text.describe('Name of the function to call.'),
    mode: text.describe('Of `allowed_tools`: `auto` or `required`.'),
    tools: z
      .array(z.object({ type: z.string().describe('`function`.'), name: text.describe('Name of the function.') }))
      .nullish()
      .describe('The tools that may be called.'),
  }),
])

const Format = z.object({
  type: z.enum(['text', 'json_object', 'json_schema']).describe('`text`, any JSON object, or JSON of a schema.'),
  name: text.describe('Name of the schema.'),
  description: text.describe('What the answer is, for the model.'),
  schema: z.record(z.string(), z.unknown()).nullish().describe('JSON Schema of the answer.'),
  strict: z.boolean().nullish().describe('Whether the answer must match the schema exactly, where the engine can.'),
})

export const ResponseRequest = z
  .object({
    model: z.string().min(1).max(256).describe('Id of the model, as in `GET /std/v1/models`.'),
    input: z
      .union([z.string(), z.array(ResponseItem)])
      .describe('A text of the user, or the items of the conversation, oldest first.'),
    instructions: text.describe('A system message before the conversation. Later responses do not inherit it.'),
    previous_response_id: text.describe('Id of a stored response that this one continues.'),
    store: z
      .boolean()
      .nullish()
      .describe('Whether to keep the response, so that it can be read and continued. Default: true.'),
    background: z
      .boolean()
      .nullish()
      .describe('Whether to answer at once and run as a durable job. Needs `store`. Default: false.'),
    stream: sampling.stream,
    max_output_tokens: z.int().min(1).nullish().describe('Most tokens to generate, reasoning included.'),
    temperature: sampling.temperature,
    top_p: sampling.top_p,
    top_logprobs: z
      .int()
      .min(0)
      .max(20)
      .nullish()
      .describe('How many of the most likely tokens to return for each position.'),
    tools: z.array(ResponseTool).max(128).nullish().describe('Functions that the model may call.'),
    tool_choice: ToolChoice.nullish().describe(
      'Whether the model calls tools: `none`, `auto`, `required`, a function, or a list of allowed functions.',
    ),
    parallel_tool_calls: z.boolean().nullish().describe('Whether the model may call several tools in one answer.'),
    text: z
      .object({
        format: Format.nullish().describe('Form of the answer. Default: text.'),
        verbosity: text.describe('Accepted for compatibility; has no effect.'),
      })
      .nullish()
      .describe('How the model answers.'),
    reasoning: z
      .object({
        effort: text.describe('How much a reasoning model thinks, such as `none`, `low`, `medium` or `high`.'),
        summary: text.describe(
          'If set, the reasoning is in `summary` of its item, where most clients look for it, else in `content`.',
        ),
        generate_summary: text.describe('Deprecated form of `summary`.'),
      })
      .nullish()
      .describe('How a reasoning model reasons.'),
    truncation: z
      .enum(['auto', 'disabled'])
      .nullish()
      .describe(
        'What happens when the conversation is too long for the model: `auto` leaves out its oldest items, but neither instructions nor the last item; `disabled` is an error (default).',
      ),
    metadata: z.record(z.string(), z.string()).nullish().describe('Up to 16 names and values of your own.'),
    include: z
      .array(z.string())
      .nullish()
      .describe('`message.output_text.logprobs` adds log probabilities; other values have no effect.'),
    conversation: z.unknown().optional().describe('Not supported: send `previous_response_id`.'),
    prompt: z.unknown().optional().describe('Not supported: send `instructions` and `input`.'),
    user: sampling.user,
  })
  .meta({ id: 'ResponseRequest', description: 'A conversation to answer.' })
export type ResponseRequest = z.output<typeof ResponseRequest>

/** A response, as it is answered. */
export const ResponseObject = z
  .looseObject({
    id: z.string().describe('Id of the response: `resp_…`.'),
    object: z.literal('response'),
    created_at: z.int().describe('Unix seconds.'),
    status: z
      .enum(['queued', 'in_progress', 'completed', 'incomplete', 'failed', 'cancelled'])
      .describe('State; `incomplete` if the token limit ended the answer.'),
    model: z.string().describe('Id of the model.'),
    output: z
      .array(z.looseObject({}))
      .describe('The items that the model generated: reasoning, a message, function calls.'),
    error: z
      .object({ code: z.string().describe('Code of the error.'), message: z.string().describe('What happened.') })
      .nullable()
      .describe('Why it failed; else null.'),
    incomplete_details: z
      .object({ reason: z.string().describe('`max_output_tokens` or `content_filter`.') })
      .nullable()
      .describe('Why it is incomplete; else null.'),
    store: z.boolean().describe('Whether it is kept. False too if its input is larger than 4 MB.'),
    usage: z
      .object({
        input_tokens: z.int().describe('Tokens of the input.'),
        input_tokens_details: z
          .object({ cached_tokens: z.int().describe('Those from a cache.'), cache_write_tokens: z.literal(0) })
          .describe('Details.'),
        output_tokens: z.int().describe('Tokens of the answer.'),
        output_tokens_details: z
          .object({ reasoning_tokens: z.int().describe('Those of the reasoning.') })
          .describe('Details.'),
        total_tokens: z.int().describe('Sum of both.'),
      })
      .optional()
      .describe('Token counts; absent before the end.'),
  })
  .meta({ id: 'Response', description: "A response, with all members of OpenAI's; those listed here have a meaning." })
