import { z } from 'zod'
import { ChatUsage, FinishReason } from '../../core/schemas/chat.ts'
import {
  array,
  integer,
  looseObject,
  namedObject,
  nullable,
  nullableNumber,
  nullish,
  nullishString,
  number,
  object,
  oneOf,
  optional,
  optionalInteger,
  optionalNumber,
  optionalString,
  string,
} from '../../core/schemas/fields.ts'
import { logLevels } from '../../core/schemas/log-level.ts'
import { registerLogEvents } from './log-event-schemas.ts'

let registered = false

/**
 * Registers the schemas once. Called at the first request for the reference, because nothing is validated with them.
 */
export function registerEventSchemas(): void {
  if (registered) return
  registered = true
  registerCompletions()
  registerDialects()
  registerMedia()
  registerLogEvents()
  registerFal()
}

function registerCompletions(): void {
  const id = string('Id of the completion, the same in all chunks.')
  const created = integer('Unix seconds.')
  const model = string('Id of the model.')
  const index = integer('Position among the choices, from 0.')
  const usage = nullish(
    ChatUsage,
    'Token counts in the last chunk, with `stream_options.include_usage`; else null or absent.',
  )
  const reason = nullable(FinishReason, 'Why generation ended, in the last chunk of the choice; null before.')
  namedObject('ChatCompletionChunk', 'A piece of a streamed chat completion.', {
    id,
    object: z.literal('chat.completion.chunk'),
    created,
    model,
    choices: array(
      'The choices that have news; none in a chunk with the token counts.',
      z.object({
        index,
        delta: object('What is new since the last chunk.', {
          role: z.literal('assistant').optional(),
          content: nullishString('The next piece of the answer.'),
          refusal: nullishString('The next piece of a refusal; null in the first chunk of a choice.'),
          reasoning_content: optionalString('The next piece of the reasoning.'),
          tool_calls: optional(
            z.array(
              z.object({
                index: integer('Position among the tool calls, from 0.'),
                id: optionalString('Id of the call, in its first piece.'),
                type: z.literal('function').optional(),
                function: object('The function that the model calls.', {
                  name: optionalString('Name of the function, in its first piece.'),
                  arguments: optionalString('The next piece of the arguments.'),
                }),
              }),
            ),
            'The next pieces of tool calls.',
          ),
        }),
        logprobs: optional(z.unknown(), 'Log probabilities of the new tokens, with `logprobs: true`; else null.'),
        finish_reason: reason,
      }),
    ),
    usage,
    service_tier: nullishString('Always `default`. For compatibility.'),
    system_fingerprint: optionalString('Names the configuration of the engine, as the engine gave it.'),
  })

  namedObject('CompletionChunk', 'A piece of a streamed completion.', {
    id,
    object: z.literal('text_completion'),
    created,
    model,
    choices: array(
      'The choices that have news; none in a chunk with the token counts.',
      z.object({
        text: string('The next piece of the text.'),
        index,
        logprobs: optional(z.unknown(), 'Log probabilities of the new tokens, if requested; else null.'),
        finish_reason: reason,
      }),
    ),
    usage,
    system_fingerprint: optionalString('Names the configuration of the engine, as the engine gave it.'),
  })
}

function registerDialects(): void {
  looseObject('ResponseEvent', 'An event of a streamed response. Its members depend on `type`.', {
    type: string(
      'What happened, such as `response.created`, `response.output_text.delta` or `response.completed`; `error` if a stream cannot go on.',
    ),
    sequence_number: integer('Number of the event, from 0.'),
    response: optional(z.looseObject({}), 'The response as it is now, in its first and last events.'),
    output_index: optionalInteger('Position of the item in the output.'),
    item_id: optionalString('Id of the item.'),
    item: optional(z.looseObject({}), 'The item, when it begins and ends.'),
    delta: optionalString('The next piece of the text, the reasoning or the arguments.'),
  })
  const position = optionalInteger('Position of the block or the tool call, from 0.')
  looseObject('AnthropicEvent', 'An event of a streamed message of Anthropic.', {
    type: z
      .enum(['message_start', 'content_block_start', 'content_block_delta', 'content_block_stop', 'message_delta'])
      .or(z.enum(['message_stop', 'ping', 'error']))
      .describe('Kind of the event, as in its line `event:`.'),
    index: position,
    delta: optional(
      z.looseObject({}),
      '`text_delta`, `thinking_delta`, `signature_delta` or `input_json_delta`; or the stop reason.',
    ),
  })

  looseObject('CohereChatEvent', 'An event of a streamed chat of Cohere.', {
    type: z
      .enum(['message-start', 'content-start', 'content-delta', 'content-end', 'tool-call-start', 'tool-call-delta'])
      .or(z.enum(['tool-call-end', 'message-end']))
      .describe('Kind of the event, as in its line `event:`.'),
    index: position,
    delta: optional(z.looseObject({}), 'What is new; in `message-end` the finish reason and the usage.'),
  })
}

function registerMedia(): void {
  z.discriminatedUnion('type', [
    z.object({
      type: z.literal('speech.audio.delta'),
      audio: string('The next piece of the audio, in base64.'),
    }),
    z.object({
      type: z.literal('speech.audio.done'),
      usage: object('What was metered.', {
        input_tokens: integer('Always 0: speech is metered in characters.'),
        output_tokens: integer('Always 0.'),
        total_tokens: integer('Always 0.'),
        characters: integer('Characters of the text.'),
        audio_seconds: number('Seconds of the audio; 0 if they are not known.'),
      }),
    }),
  ]).meta({ id: 'SpeechEvent', description: 'An event of streamed speech.' })

  const logprobs = optional(z.array(z.unknown()), 'Log probabilities of the tokens, with `include: ["logprobs"]`.')
  z.discriminatedUnion('type', [
    z.object({
      type: z.literal('transcript.text.delta'),
      delta: string('The next piece of the text.'),
      logprobs,
    }),
    z.object({
      type: z.literal('transcript.text.done'),
      text: string('The whole text.'),
      logprobs,
      usage: object('What was metered.', {
        type: z.literal('duration'),
        seconds: integer('Seconds of audio, rounded up.'),
      }),
    }),
  ]).meta({ id: 'TranscriptionEvent', description: 'An event of a streamed transcription.' })

  namedObject('ImageEvent', 'A streamed image.', {
    type: oneOf('Whether the image is unfinished or finished.', [
      'image_generation.partial_image',
      'image_generation.completed',
      'image_edit.partial_image',
      'image_edit.completed',
    ]),
    b64_json: string('The bytes of the image in base64.'),
    created_at: integer('Unix seconds.'),
    size: string('`<width>x<height>` in pixels.'),
    quality: oneOf('Quality of the request.', ['auto', 'low', 'medium', 'high']),
    background: string('Background of the request.'),
    output_format: oneOf('Format of the image.', ['png', 'jpeg', 'webp']),
    partial_image_index: optionalInteger('Number of the unfinished image, from 0.'),
    image_index: optionalInteger('Position of the image in the request, from 0, of an unfinished image.'),
    usage: optional(
      z.looseObject({}),
      'Token counts, which are 0 for images, and `images`: 1. Only of finished images.',
    ),
  })
}

function registerFal(): void {
  const request_id = string('Id of the request: `q_…`.')
  looseObject('FalStatus', 'The status of a request in the form of fal.', {
    status: oneOf('State of the request. A failed one is completed and has `error`.', [
      'IN_QUEUE',
      'IN_PROGRESS',
      'COMPLETED',
    ]),
    request_id,
    queue_position: optionalInteger('How many requests are before it. Present while it waits.'),
    logs: array(
      'Lines of the log that are new, with `?logs=1`; else empty.',
      z.object({
        timestamp: string('ISO 8601, UTC.'),
        level: oneOf('Level of the line.', logLevels),
        message: string('Text of the line.'),
        source: string('Always `USER`.'),
      }),
    ),
    metrics: optional(
      z.object({ inference_time: nullableNumber('Seconds that the engine worked; null if it did not.') }),
      'How long it took. Present at the end.',
    ),
    error: optionalString('Why it failed.'),
    error_type: optionalString("Class of the error in fal's terms."),
    response_url: string('Where to read the result.'),
    status_url: string('Where to read the status.'),
    cancel_url: string('Where to cancel the request.'),
  })

  looseObject('FalRunEvent', 'Progress of a request; the last event is the result of the task.', {
    request_id: optionalString('Id of the request, until the last event.'),
    progress: optionalNumber('Progress from 0 to 1, until the last event.'),
  })
}
