import { z } from 'zod'

/**
 * The wire shapes of chat completions. Source: OpenAI's published API description (CreateChatCompletionRequest,
 * CreateChatCompletionResponse, CreateChatCompletionStreamResponse) and the fields that vLLM and llama.cpp add.
 * The request object lists every field that may reach an engine; what it does not list is dropped, never forwarded.
 */
const TextPart = z.object({ type: z.literal('text'), text: z.string() })
const ImagePart = z.object({
  type: z.literal('image_url'),
  image_url: z.object({ url: z.string(), detail: z.enum(['auto', 'low', 'high']).optional() }),
})
const AudioPart = z.object({
  type: z.literal('input_audio'),
  input_audio: z.object({ data: z.string(), format: z.enum(['wav', 'mp3']) }),
})
const FilePart = z.object({
  type: z.literal('file'),
  file: z.object({ file_id: z.string().optional(), file_data: z.string().optional(), filename: z.string().optional() }),
})
const RefusalPart = z.object({ type: z.literal('refusal'), refusal: z.string() })
const Part = z.discriminatedUnion('type', [TextPart, ImagePart, AudioPart, FilePart, RefusalPart])
const Content = z.union([z.string(), z.array(Part).min(1)])

export const ToolCall = z.object({
  id: z.string(),
  type: z.literal('function'),
  function: z.object({ name: z.string(), arguments: z.string() }),
})

const name = z.string().max(256).optional()
const Message = z.discriminatedUnion('role', [
  z.object({ role: z.literal('developer'), content: Content, name }),
  z.object({ role: z.literal('system'), content: Content, name }),
  z.object({ role: z.literal('user'), content: Content, name }),
  z.object({
    role: z.literal('assistant'),
    content: Content.nullish(),
    name,
    refusal: z.string().nullish(),
    reasoning_content: z.string().nullish(),
    tool_calls: z.array(ToolCall).max(128).optional(),
    function_call: z.object({ name: z.string(), arguments: z.string() }).nullish(),
  }),
  z.object({ role: z.literal('tool'), content: Content, tool_call_id: z.string() }),
  z.object({ role: z.literal('function'), content: z.string().nullable(), name: z.string() }),
])

const JsonObject = z.record(z.string(), z.unknown())
const FunctionDefinition = z.object({
  name: z.string().regex(/^[A-Za-z0-9_.-]{1,64}$/, 'Up to 64 letters, digits, "_", "." and "-".'),
  description: z.string().optional(),
  parameters: JsonObject.optional(),
  strict: z.boolean().nullish(),
})
const FunctionName = z.object({ name: z.string() })

const ResponseFormat = z.discriminatedUnion('type', [
  z.object({ type: z.literal('text') }),
  z.object({ type: z.literal('json_object') }),
  z.object({
    type: z.literal('json_schema'),
    json_schema: z.object({
      name: z.string().max(64),
      description: z.string().optional(),
      schema: JsonObject.optional(),
      strict: z.boolean().nullish(),
    }),
  }),
])

export const ChatRequest = z
  .object({
    model: z.string().min(1).max(256),
    messages: z.array(Message).min(1),
    stream: z.boolean().nullish(),
    stream_options: z
      .object({ include_usage: z.boolean().optional(), include_obfuscation: z.boolean().optional() })
      .nullish(),
    max_completion_tokens: z.int().min(1).nullish(),
    max_tokens: z.int().min(1).nullish(),
    temperature: z.number().min(0).max(2).nullish(),
    top_p: z.number().min(0).max(1).nullish(),
    n: z.int().min(1).max(128).nullish(),
    stop: z.union([z.string(), z.array(z.string()).max(4)]).nullish(),
    seed: z.int().nullish(),
    presence_penalty: z.number().min(-2).max(2).nullish(),
    frequency_penalty: z.number().min(-2).max(2).nullish(),
    logit_bias: z.record(z.string(), z.number().min(-100).max(100)).nullish(),
    logprobs: z.boolean().nullish(),
    top_logprobs: z.int().min(0).max(20).nullish(),
    tools: z
      .array(z.object({ type: z.literal('function'), function: FunctionDefinition }))
      .max(128)
      .nullish(),
    tool_choice: z
      .union([z.enum(['none', 'auto', 'required']), z.object({ type: z.literal('function'), function: FunctionName })])
      .nullish(),
    parallel_tool_calls: z.boolean().nullish(),
    functions: z.array(FunctionDefinition).max(128).nullish(),
    function_call: z.union([z.enum(['none', 'auto']), FunctionName]).nullish(),
    response_format: ResponseFormat.nullish(),
    reasoning_effort: z.string().nullish(),
    user: z.string().nullish(),
    metadata: JsonObject.nullish(),
    top_k: z.int().min(-1).nullish(),
    min_p: z.number().min(0).max(1).nullish(),
    repetition_penalty: z.number().min(0).nullish(),
    chat_template_kwargs: JsonObject.nullish(),
    priority: z.int().nullish(),
    cache_salt: z.string().max(256).nullish(),
  })
  .meta({ id: 'ChatCompletionRequest' })
export type ChatRequest = z.output<typeof ChatRequest>

const tokens = z.int().min(0)
export const ChatUsage = z
  .object({
    prompt_tokens: tokens,
    completion_tokens: tokens,
    total_tokens: tokens,
    prompt_tokens_details: z.object({ cached_tokens: tokens, audio_tokens: tokens }).optional(),
    completion_tokens_details: z
      .object({
        reasoning_tokens: tokens,
        audio_tokens: tokens,
        accepted_prediction_tokens: tokens,
        rejected_prediction_tokens: tokens,
      })
      .optional(),
  })
  .meta({ id: 'CompletionUsage' })

export const FinishReason = z.enum(['stop', 'length', 'tool_calls', 'content_filter', 'function_call'])

export const ChatResponse = z
  .object({
    id: z.string(),
    object: z.literal('chat.completion'),
    created: z.int(),
    model: z.string(),
    choices: z.array(
      z.object({
        index: z.int(),
        message: z.looseObject({
          role: z.literal('assistant'),
          content: z.string().nullable(),
          refusal: z.string().nullable(),
          tool_calls: z.array(ToolCall).optional(),
          reasoning_content: z.string().optional(),
        }),
        logprobs: z.unknown().nullable(),
        finish_reason: FinishReason,
      }),
    ),
    usage: ChatUsage,
    service_tier: z.string().nullish(),
    system_fingerprint: z.string().optional(),
  })
  .meta({ id: 'ChatCompletionResponse' })
export type ChatResponse = z.output<typeof ChatResponse>
