import { z } from 'zod'

export const JsonRecord = z.record(z.string(), z.unknown())

/** A part of a message: which members it has is checked when it is translated. */
const SentPart = z.looseObject({
  type: z.string().describe('`input_text`, `output_text`, `input_image`, `input_file` or `refusal`.'),
  text: z.string().optional().describe('The text.'),
  refusal: z.string().optional().describe('The refusal that the model gave.'),
  image_url: z.string().nullish().describe('An http(s) URL or a `data:` URL of the image.'),
  detail: z.string().nullish().describe('Resolution at which the engine reads the image.'),
  file_id: z.string().nullish().describe('Id of a stored file (`file-…`).'),
  file_data: z.string().nullish().describe('The file in base64 or as a `data:` URL.'),
  filename: z.string().nullish().describe('Name of the file.'),
})
export type SentPart = z.output<typeof SentPart>

const parts = z.union([z.string(), z.array(SentPart)])

/** An item of the input. One loose shape instead of a union of thirty: the translation names what an item lacks. */
export const sentItems = z
  .looseObject({
    type: z
      .string()
      .optional()
      .describe('`message` (default), `function_call`, `function_call_output` or `reasoning`.'),
    id: z.string().nullish().describe('Id of the item, as the response gave it.'),
    role: z.enum(['user', 'assistant', 'system', 'developer']).optional().describe('Who wrote the message.'),
    content: parts.nullish().describe('A text or parts of a message; the text of the reasoning.'),
    call_id: z.string().optional().describe('Id of the tool call.'),
    name: z.string().optional().describe('Name of the function.'),
    arguments: z.string().optional().describe('Arguments as JSON text.'),
    output: parts.optional().describe('Result of the tool call.'),
    summary: z.array(SentPart).optional().describe('Summary of the reasoning.'),
    encrypted_content: z.string().nullish().describe('The reasoning, as an earlier response gave it.'),
  })
  .meta({ id: 'ResponsesItem', description: 'An item of a conversation. Its fields depend on `type`.' })
export type SentItem = z.output<typeof sentItems>

const count = (of: string) => z.int().min(0).describe(of)

export const ResponseObject = z
  .looseObject({
    id: z.string().describe('Id of the response: `resp_…` with the id of its job.'),
    object: z.literal('response'),
    created_at: z.int().describe('Unix seconds.'),
    status: z
      .enum(['completed', 'incomplete', 'in_progress', 'failed'])
      .describe('`incomplete` if the answer was cut off; `in_progress` and `failed` only in streams.'),
    completed_at: z.int().nullable().describe('Unix seconds of the end; null if it was not completed.'),
    error: z
      .object({
        code: z.string().describe('Code in terms of OpenAI, such as `server_error`.'),
        message: z.string().describe('What happened.'),
      })
      .nullable()
      .describe('Why it failed.'),
    incomplete_details: z
      .object({ reason: z.enum(['max_output_tokens', 'content_filter']).describe('Why the answer was cut off.') })
      .nullable()
      .describe('Why it is incomplete.'),
    model: z.string().describe('Id of the model.'),
    output: z
      .array(
        z.looseObject({
          type: z.enum(['message', 'function_call', 'reasoning']).describe('Kind of the item.'),
          id: z.string().describe('Id of the item.'),
          status: z.enum(['in_progress', 'completed', 'incomplete']).describe('Whether the item is whole.'),
        }),
      )
      .describe('Reasoning, text and tool calls, in this order. Other fields depend on `type`.'),
    usage: z
      .object({
        input_tokens: count('Tokens of the prompt.'),
        input_tokens_details: z
          .object({
            cached_tokens: count('Tokens that the engine took from its cache.'),
            cache_write_tokens: count('Always 0: writing to the cache of an engine costs nothing.'),
          })
          .describe('Details of the prompt tokens.'),
        output_tokens: count('Tokens of the answer.'),
        output_tokens_details: z
          .object({ reasoning_tokens: count('Tokens of the reasoning.') })
          .describe('Details of the answer tokens.'),
        total_tokens: count('Sum of both.'),
      })
      .optional()
      .describe('Token counts; absent until the end of a stream.'),
  })
  .meta({
    id: 'Response',
    description: 'An answer in the form of OpenAI responses, with the options of its request.',
  })
