import { z } from 'zod'
import {
  array,
  boolean,
  integer,
  looseObject,
  modelId,
  namedObject,
  nullish,
  nullishBoolean,
  nullishObject,
  nullishString,
  object,
  oneOf,
  optional,
  optionalObject,
  string,
} from '../../schemas/fields.ts'
import { sampling } from '../../schemas/sampling.ts'

/**
 * The wire shapes of responses. Source: OpenAI's published API description (CreateResponse, Response). Clients send null
 * for what they leave out.
 */
export const ResponsePart = namedObject('ResponseContentPart', 'A part of a message. Its fields depend on `type`.', {
  type: string('`input_text`, `input_image`, `input_file`, `input_audio`; in answers `output_text`, `refusal`.'),
  text: nullishString('The text.'),
  refusal: nullishString('The refusal.'),
  image_url: nullishString('An http(s) or `data:` URL of an image.'),
  detail: nullishString('Resolution at which the engine reads the image: `auto`, `low` or `high`.'),
  file_id: nullishString('Id of an uploaded file (`file-…`).'),
  file_data: nullishString('The file as a `data:` URL or in base64.'),
  file_url: nullishString('Not supported: upload the file.'),
  filename: nullishString('Name of the file.'),
  input_audio: nullishObject('The audio.', { data: string('The audio in base64.'), format: string('`wav` or `mp3`.') }),
})
export type ResponsePart = z.output<typeof ResponsePart>

const parts = z.union([z.string(), z.array(ResponsePart)])

export const ResponseItem = looseObject('ResponseItem', 'An item of a conversation. Its fields depend on `type`.', {
  type: nullishString(
    '`message` (default), `function_call`, `custom_tool_call`, `local_shell_call`, `shell_call`, `apply_patch_call`, each of these with `_output`, `reasoning`, `item_reference` or `additional_tools`. Others are left out of the prompt.',
  ),
  id: nullishString('Id of the item. An `item_reference` names an item of a stored response by it.'),
  status: nullishString('`in_progress`, `completed` or `incomplete`.'),
  role: nullishString('Of a message: `user`, `assistant`, `system` or `developer`.'),
  content: nullish(parts, 'Content of a message, or the text of a reasoning item.'),
  call_id: nullishString('Id of a function call; its output names the same id.'),
  name: nullishString('Name of the function.'),
  namespace: nullishString('Namespace of the function.'),
  arguments: nullishString('Arguments of the function call, as JSON text.'),
  input: optional(z.unknown(), 'Text of a `custom_tool_call`.'),
  action: optional(z.unknown(), 'What a shell call runs.'),
  operation: optional(z.unknown(), 'What an `apply_patch_call` changes.'),
  tools: nullish(z.array(z.unknown()), 'The tools that `additional_tools` adds.'),
  output: optional(z.unknown(), 'What the function returned: a text or a list of parts.'),
  summary: nullish(z.array(ResponsePart), 'Summary of a reasoning item.'),
  encrypted_content: nullishString('Accepted for compatibility; has no effect.'),
})
export type ResponseItem = z.output<typeof ResponseItem>

export const ResponseTool = looseObject('ResponseTool', 'A tool that the model may call.', {
  type: string(
    '`function`, `custom` (a function of one text) or `namespace`. Tools that run at OpenAI are left out, and named in `x-infer-ignored`.',
  ),
  name: nullishString('Name of the function, of 1 to 128 characters.'),
  description: nullishString('What the function does. The model decides by it when to call the function.'),
  parameters: nullish(z.record(z.string(), z.unknown()), 'JSON Schema of the arguments.'),
  strict: nullishBoolean('Whether arguments must match the schema exactly, where the engine can.'),
  format: nullishObject('Form of the text of a `custom` tool. A grammar is described to the model, and not enforced.', {
    type: nullishString('`text` or `grammar`.'),
    syntax: nullishString('Of the grammar: `lark` or `regex`.'),
    definition: nullishString('The grammar.'),
  }),
  tools: nullish(z.array(z.unknown()), 'The tools of a `namespace`.'),
})
export type ResponseTool = z.output<typeof ResponseTool>

const ToolChoice = z.union([
  z.string(),
  z.object({
    type: string('`function`, `custom` or `allowed_tools`; a tool that runs at OpenAI is left out.'),
    name: nullishString('Name of the function to call.'),
    mode: nullishString('Of `allowed_tools`: `auto` or `required`.'),
    tools: nullish(
      z.array(z.object({ type: string('`function` or `custom`.'), name: nullishString('Name of the function.') })),
      'The tools that may be called.',
    ),
  }),
])

const Format = z.object({
  type: oneOf('`text`, any JSON object, or JSON of a schema.', ['text', 'json_object', 'json_schema']),
  name: nullishString('Name of the schema.'),
  description: nullishString('What the answer is, for the model.'),
  schema: nullish(z.record(z.string(), z.unknown()), 'JSON Schema of the answer.'),
  strict: nullishBoolean('Whether the answer must match the schema exactly, where the engine can.'),
})

export const ResponseRequest = namedObject('ResponseRequest', 'A conversation to answer.', {
  model: modelId,
  input: z
    .union([z.string(), z.array(ResponseItem)])
    .describe('A text of the user, or the items of the conversation, oldest first.'),
  instructions: nullishString('A system message before the conversation. Later responses do not inherit it.'),
  previous_response_id: nullishString('Id of a stored response that this one continues.'),
  store: nullishBoolean('Whether to keep the response, so that it can be read and continued. Default: true.'),
  background: nullishBoolean('Whether to answer at once and run as a durable job. Needs `store`. Default: false.'),
  stream: sampling.stream,
  max_output_tokens: nullish(z.int().min(1), 'Most tokens to generate, reasoning included.'),
  temperature: sampling.temperature,
  top_p: sampling.top_p,
  top_logprobs: nullish(z.int().min(0).max(20), 'How many of the most likely tokens to return for each position.'),
  tools: nullish(z.array(ResponseTool).max(128), 'Functions that the model may call.'),
  tool_choice: nullish(
    ToolChoice,
    'Whether the model calls tools: `none`, `auto`, `required`, a function, or a list of allowed functions.',
  ),
  parallel_tool_calls: nullishBoolean('Whether the model may call several tools in one answer.'),
  text: nullishObject('How the model answers.', {
    format: nullish(Format, 'Form of the answer. Default: text.'),
    verbosity: nullishString('Accepted for compatibility; has no effect.'),
  }),
  reasoning: nullishObject('How a reasoning model reasons.', {
    effort: nullishString('How much a reasoning model thinks, such as `none`, `low`, `medium` or `high`.'),
    summary: nullishString(
      'If set, the reasoning is in `summary` of its item, where most clients look for it, else in `content`.',
    ),
    generate_summary: nullishString('Deprecated form of `summary`.'),
  }),
  truncation: nullish(
    z.enum(['auto', 'disabled']),
    'What happens when the conversation is too long for the model: `auto` leaves out its oldest items, but neither instructions nor the last item; `disabled` is an error (default).',
  ),
  metadata: nullish(z.record(z.string(), z.string()), 'Up to 16 names and values of your own.'),
  include: nullish(
    z.array(z.string()),
    '`message.output_text.logprobs` adds log probabilities; other values have no effect.',
  ),
  conversation: optional(z.unknown(), 'Not supported: send `previous_response_id`.'),
  prompt: optional(z.unknown(), 'Not supported: send `instructions` and `input`.'),
  user: sampling.user,
})
export type ResponseRequest = z.output<typeof ResponseRequest>

/** A response, as it is answered. */
export const ResponseObject = z
  .looseObject({
    id: string('Id of the response: `resp_…`.'),
    object: z.literal('response'),
    created_at: integer('Unix seconds.'),
    status: oneOf('State; `incomplete` if the token limit ended the answer.', [
      'queued',
      'in_progress',
      'completed',
      'incomplete',
      'failed',
      'cancelled',
    ]),
    model: string('Id of the model.'),
    output: array('The items that the model generated: reasoning, a message, function calls.', z.looseObject({})),
    error: z
      .object({ code: string('Code of the error.'), message: string('What happened.') })
      .nullable()
      .describe('Why it failed; else null.'),
    incomplete_details: z
      .object({ reason: string('`max_output_tokens` or `content_filter`.') })
      .nullable()
      .describe('Why it is incomplete; else null.'),
    store: boolean('Whether it is kept. False too if its input is larger than 4 MB.'),
    usage: optionalObject('Token counts; absent before the end.', {
      input_tokens: integer('Tokens of the input.'),
      input_tokens_details: object('Details.', {
        cached_tokens: integer('Those from a cache.'),
        cache_write_tokens: z.literal(0),
      }),
      output_tokens: integer('Tokens of the answer.'),
      output_tokens_details: object('Details.', { reasoning_tokens: integer('Those of the reasoning.') }),
      total_tokens: integer('Sum of both.'),
    }),
  })
  .meta({ id: 'Response', description: "A response, with all members of OpenAI's; those listed here have a meaning." })
