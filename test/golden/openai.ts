import { Ajv2020 } from 'ajv/dist/2020.js'

/**
 * What OpenAI's published API description (openapi.json, info.version 2.3.0) requires of the responses that its clients
 * read, written down as JSON Schema: member names, types, enumerations and which are required.
 */
const string = { type: 'string' }
const integer = { type: 'integer' }
const nullable = (schema: object) => ({ anyOf: [schema, { type: 'null' }] })
const object = (required: string[], properties: Record<string, object>) => ({ type: 'object', required, properties })
const array = (items: object) => ({ type: 'array', items })

const tokenLogprob = object(['token', 'logprob', 'bytes', 'top_logprobs'], {
  token: string,
  logprob: { type: 'number' },
  bytes: nullable(array(integer)),
  top_logprobs: array(
    object(['token', 'logprob', 'bytes'], {
      token: string,
      logprob: { type: 'number' },
      bytes: nullable(array(integer)),
    }),
  ),
})
const logprobs = nullable(
  object(['content', 'refusal'], { content: nullable(array(tokenLogprob)), refusal: nullable(array(tokenLogprob)) }),
)
const finishReason = { type: 'string', enum: ['stop', 'length', 'tool_calls', 'content_filter', 'function_call'] }
const toolCall = object(['id', 'type', 'function'], {
  id: string,
  type: { const: 'function' },
  function: object(['name', 'arguments'], { name: string, arguments: string }),
})
const toolCallChunk = object(['index'], {
  index: integer,
  id: string,
  type: { const: 'function' },
  function: object([], { name: string, arguments: string }),
})
const usage = object(['prompt_tokens', 'completion_tokens', 'total_tokens'], {
  prompt_tokens: integer,
  completion_tokens: integer,
  total_tokens: integer,
  prompt_tokens_details: object([], { audio_tokens: integer, cached_tokens: integer }),
  completion_tokens_details: object([], {
    accepted_prediction_tokens: integer,
    audio_tokens: integer,
    reasoning_tokens: integer,
    rejected_prediction_tokens: integer,
  }),
})
const serviceTier = nullable({ type: 'string', enum: ['auto', 'default', 'flex', 'scale', 'priority'] })
const completion = {
  id: string,
  created: integer,
  model: string,
  service_tier: serviceTier,
  system_fingerprint: string,
}
const model = object(['id', 'object', 'created', 'owned_by'], {
  id: string,
  object: { const: 'model' },
  created: integer,
  owned_by: string,
})
const imageUsage = object(['input_tokens', 'total_tokens', 'output_tokens', 'input_tokens_details'], {
  input_tokens: integer,
  total_tokens: integer,
  output_tokens: integer,
  input_tokens_details: object(['text_tokens', 'image_tokens'], { text_tokens: integer, image_tokens: integer }),
})
const imageFormat = { type: 'string', enum: ['png', 'webp', 'jpeg'] }
/** Its sizes are those of OpenAI's own models; here a size is any. */
const imageCompleted = (type: string) =>
  object(['type', 'b64_json', 'created_at', 'size', 'quality', 'background', 'output_format', 'usage'], {
    type: { const: type },
    b64_json: string,
    created_at: integer,
    size: string,
    quality: { type: 'string', enum: ['low', 'medium', 'high', 'auto'] },
    background: { type: 'string', enum: ['transparent', 'opaque', 'auto'] },
    output_format: imageFormat,
    usage: imageUsage,
  })

const schemas = {
  CreateChatCompletionResponse: object(['choices', 'created', 'id', 'model', 'object'], {
    ...completion,
    object: { const: 'chat.completion' },
    usage,
    choices: array(
      object(['finish_reason', 'index', 'message', 'logprobs'], {
        finish_reason: finishReason,
        index: integer,
        logprobs,
        message: object(['role', 'content', 'refusal'], {
          role: { const: 'assistant' },
          content: nullable(string),
          refusal: nullable(string),
          tool_calls: array(toolCall),
          annotations: array(object(['type', 'url_citation'], {})),
          function_call: object(['name', 'arguments'], { name: string, arguments: string }),
        }),
      }),
    ),
  }),
  CreateChatCompletionStreamResponse: object(['choices', 'created', 'id', 'model', 'object'], {
    ...completion,
    object: { const: 'chat.completion.chunk' },
    usage: nullable(usage),
    choices: array(
      object(['delta', 'finish_reason', 'index'], {
        index: integer,
        finish_reason: nullable(finishReason),
        logprobs,
        delta: object([], {
          role: { type: 'string', enum: ['developer', 'system', 'user', 'assistant', 'tool'] },
          content: nullable(string),
          refusal: nullable(string),
          tool_calls: array(toolCallChunk),
        }),
      }),
    ),
  }),
  CreateCompletionResponse: object(['choices', 'created', 'id', 'model', 'object'], {
    id: string,
    created: integer,
    model: string,
    system_fingerprint: string,
    object: { const: 'text_completion' },
    usage,
    choices: array(
      object(['finish_reason', 'index', 'logprobs', 'text'], {
        finish_reason: nullable({ type: 'string', enum: ['stop', 'length', 'content_filter'] }),
        index: integer,
        text: string,
        logprobs: nullable(
          object([], {
            text_offset: array(integer),
            token_logprobs: array(nullable({ type: 'number' })),
            tokens: array(string),
            top_logprobs: nullable(array(nullable({ type: 'object' }))),
          }),
        ),
      }),
    ),
  }),
  CreateEmbeddingResponse: object(['object', 'model', 'data', 'usage'], {
    object: { const: 'list' },
    model: string,
    data: array(
      object(['index', 'object', 'embedding'], {
        index: integer,
        object: { const: 'embedding' },
        embedding: array({ type: 'number' }),
      }),
    ),
    usage: object(['prompt_tokens', 'total_tokens'], { prompt_tokens: integer, total_tokens: integer }),
  }),
  ImagesResponse: object(['created'], {
    created: integer,
    data: array(object([], { b64_json: string, url: string, revised_prompt: string })),
    background: { type: 'string', enum: ['transparent', 'opaque'] },
    output_format: imageFormat,
    size: string,
    quality: { type: 'string', enum: ['low', 'medium', 'high'] },
    usage: imageUsage,
  }),
  ImageGenPartialImageEvent: object(
    ['type', 'b64_json', 'created_at', 'size', 'quality', 'background', 'output_format', 'partial_image_index'],
    {
      type: { const: 'image_generation.partial_image' },
      b64_json: string,
      created_at: integer,
      size: string,
      quality: { type: 'string', enum: ['low', 'medium', 'high', 'auto'] },
      background: { type: 'string', enum: ['transparent', 'opaque', 'auto'] },
      output_format: imageFormat,
      partial_image_index: integer,
    },
  ),
  ImageGenCompletedEvent: imageCompleted('image_generation.completed'),
  ImageEditCompletedEvent: imageCompleted('image_edit.completed'),
  SpeechAudioDeltaEvent: object(['type', 'audio'], { type: { const: 'speech.audio.delta' }, audio: string }),
  SpeechAudioDoneEvent: object(['type', 'usage'], {
    type: { const: 'speech.audio.done' },
    usage: object(['input_tokens', 'output_tokens', 'total_tokens'], {
      input_tokens: integer,
      output_tokens: integer,
      total_tokens: integer,
    }),
  }),
  Model: model,
  ListModelsResponse: object(['object', 'data'], { object: { const: 'list' }, data: array(model) }),
  ErrorResponse: object(['error'], {
    error: object(['type', 'message', 'param', 'code'], {
      type: string,
      message: string,
      param: nullable(string),
      code: nullable(string),
    }),
  }),
}

const ajv = new Ajv2020({ strict: false, allErrors: true })
const checks = Object.fromEntries(Object.entries(schemas).map(([name, schema]) => [name, ajv.compile(schema)]))

/** What is wrong with the value by the named schema; an empty list when nothing is. */
export function faults(name: keyof typeof schemas, value: unknown): string[] {
  const check = checks[name]!
  return check(value) ? [] : (check.errors ?? []).map(error => `${name}${error.instancePath} ${error.message}`)
}
