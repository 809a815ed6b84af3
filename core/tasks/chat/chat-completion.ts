import { invalid } from '../../failure.ts'
import { ulid } from '../../ids.ts'
import { listOf } from '../../json.ts'
import { presentMembers } from '../../members.ts'
import type { EngineTraits, ModelSet } from '../../models/engine-traits.ts'
import { ChatRequest, ChatResponse, type ToolSelection, toolSelection } from '../../schemas/chat.ts'
import { parsed } from '../../schemas/issues.ts'
import { extraFields, featureCheck, modelFor, type RequireFeature } from '../catalog.ts'
import type { CallerAnswer, PreparedRequest } from '../engine-request.ts'
import { textMetering } from '../metering.ts'
import { firstOf, type TaskPrediction } from '../prediction.ts'
import { withProfile } from '../profile.ts'
import {
  answerHead,
  answerText,
  answerUsage,
  answerUsageObject,
  engineFault,
  fingerprintOf,
  finishReason,
  parseAnswer,
  tokenCount,
  usageBody,
} from '../protocols/answer.ts'
import { chatLogprobs } from '../protocols/logprobs.ts'
import { streamedMembers, streamOptions } from '../protocols/openai-text.ts'
import {
  checkSampling,
  checkStreamOptions,
  engineBody,
  isRepeatableSample,
  samplingFeatures,
  wantsSeveral,
} from '../sampling.ts'
import type { TaskName, TextTaskRecord } from '../task.ts'
import { sampleText, testOfStream } from '../task-test.ts'
import { textTask } from '../text-task.ts'
import { markImages } from './images.ts'
import { inlineTextFiles } from './text-files.ts'
import { droppableBody } from './truncation.ts'

/** Names the task. */
export const chatCompletion = { id: 'std/chat-completion', title: 'chat completions' } as const satisfies TaskName

export interface ChatAnswerFormat {
  task: typeof chatCompletion.id
  modelId: string
  /** Whether the caller requested the usage chunk of a stream. */
  includeUsage: boolean
  /** Whether the caller spoke the legacy `functions` dialect and is answered in it. */
  legacyFunctions: boolean
}

/** Fields that are not copied to the engine's request: infer uses or translates them, or they are about the caller. */
const kept = new Set([
  'user',
  'metadata',
  'functions',
  'function_call',
  'stream_options',
  'model',
  'max_tokens',
  'response_format',
  'truncation',
])

type PlainRequest = ChatRequest & ToolSelection

/** Checks a chat body and translates it for the engine. Throws Failure for an invalid body. */
export function prepareChat(raw: unknown, catalog: ModelSet): PreparedRequest {
  const parsedRequest = parsed(ChatRequest, raw)
  const entry = modelFor(chatCompletion, parsedRequest.model, catalog)
  const sent = withProfile(parsedRequest, entry.profile)
  const { tools, tool_choice } = toolSelection(sent)
  const request: PlainRequest = {
    ...sent,
    tools,
    tool_choice,
    messages: inlineTextFiles(sent.messages, entry.traits.features.has('files')),
  }
  checkTogether(request)
  requireFeatures(request, featureCheck(entry))
  const stream = request.stream === true
  const { messages, images } = markImages(request.messages)
  const body = engineBody(entry.traits.upstreamId, request, kept)
  body.messages = messages
  if (request.chat_template_kwargs) body.chat_template_kwargs = templateVariables(request.chat_template_kwargs)
  const limit = request.max_completion_tokens ?? request.max_tokens
  if (limit !== null && limit !== undefined && request.max_completion_tokens == null) body.max_tokens = limit
  if (request.response_format) body.response_format = formatFor(request.response_format, entry.traits)
  if (request.functions?.length) {
    body.tools = request.functions.map(definition => ({ type: 'function', function: definition }))
    const choice = request.function_call
    if (choice) body.tool_choice = typeof choice === 'string' ? choice : { type: 'function', function: choice }
  }
  const named = body.tool_choice as { function?: { name?: string } } | undefined
  if (named?.function && !entry.traits.namedTool) {
    // An engine that ignores the named tool would call any tool, or none.
    body.tools = (body.tools as { function: { name: string } }[]).filter(
      tool => tool.function.name === named.function!.name,
    )
    body.tool_choice = 'required'
    // A caller who names a function expects one call of it.
    body.parallel_tool_calls = false
  }
  if (stream) Object.assign(body, streamOptions(entry.traits.streamUsage))
  // Members are added to the body, and none may be there twice.
  else delete body.stream
  if (entry.traits.savesConversations && (raw as { store?: unknown }).store === false) body.store = false
  if (entry.extraParams.length > 0) Object.assign(body, extraFields(raw, entry))
  const asStream = stream || !isPlain(request) ? undefined : streamedMembers(entry.traits.streamUsage)
  const cut = request.truncation === 'auto' ? droppableBody({ ...body, messages }, limit ?? null) : undefined
  return {
    modelId: entry.id,
    path: entry.traits.routes.chat!.path,
    bodies: [cut?.text ?? JSON.stringify(body)],
    stream,
    droppable: cut?.droppable,
    asStream,
    images: images.length > 0 ? images : undefined,
    ...((raw as { store?: unknown }).store === false ? { unstored: true as const } : {}),
    ...(wantsSeveral(body) && { several: true as const }),
    answerFormat: {
      task: chatCompletion.id,
      modelId: entry.id,
      includeUsage: request.stream_options?.include_usage === true,
      legacyFunctions: Boolean(request.functions?.length),
    },
  }
}

/** Arguments of the function that renders chat templates in engines. They are no variables, and can replace the template. */
const renderArguments = new Set([
  'chat_template',
  'conversation',
  'tokenize',
  'tokenizer_kwargs',
  'padding',
  'truncation',
  'max_length',
  'return_tensors',
  'return_dict',
  'return_assistant_tokens_mask',
])

/** Returns the variables among `chat_template_kwargs`: vLLM takes arguments of its rendering function there too. */
const templateVariables = (given: object): object =>
  Object.fromEntries(Object.entries(given).filter(([name]) => !renderArguments.has(name)))

/**
 * Whether the answer is only text. Engines parse tool calls of a stream with other code than those of a whole answer, so
 * such requests are sent in the way the caller chose.
 */
const isPlain = (request: ChatRequest): boolean =>
  !request.tools?.length && !request.functions?.length && !request.logprobs && (request.n ?? 1) === 1

function checkTogether(request: PlainRequest): void {
  checkStreamOptions(request)
  if (request.top_logprobs != null && request.logprobs !== true)
    throw invalid('top_logprobs', "'top_logprobs' needs logprobs: true.")
  const choice = request.tool_choice
  if (choice && choice !== 'none' && choice !== 'auto' && !request.tools?.length)
    throw invalid('tool_choice', "'tool_choice' needs 'tools' to choose from.")
  if (typeof choice === 'object' && choice && !request.tools?.some(tool => tool.function.name === choice.function.name))
    throw invalid('tool_choice', `'tool_choice' names '${choice.function.name}', which is not among 'tools'.`)
  if (request.functions?.length && request.stream)
    throw invalid(
      'functions',
      "'functions' cannot be streamed. Use 'tools', which replaced it.",
      'unsupported_parameter',
    )
}

/** Checks everything that the request may use beyond plain text messages. */
function requireFeatures(request: ChatRequest, requireFeature: RequireFeature): void {
  requireFeature(request.tools?.length, 'tools')
  requireFeature(request.functions?.length, 'tools', 'functions')
  requireFeature(request.response_format?.type === 'json_object', 'json_object', 'response_format')
  requireFeature(request.response_format?.type === 'json_schema', 'json_schema', 'response_format')
  requireFeature(request.logprobs, 'logprobs')
  checkSampling(request, requireFeature)
  const variables = request.chat_template_kwargs
  requireFeature(variables && Object.keys(variables).length, 'chat_template_kwargs')
  for (const [at, { content }] of request.messages.entries())
    if (Array.isArray(content))
      for (const [place, part] of content.entries())
        requirePart(part, `messages[${at}].content[${place}]`, requireFeature)
}

type Part = Extract<NonNullable<ChatRequest['messages'][number]['content']>, unknown[]>[number]
const partFeatures = { image_url: 'images', input_audio: 'audio', file: 'files' } as const

function requirePart(part: Part, param: string, requireFeature: RequireFeature): void {
  // The text of a stored file replaces it.
  const isStored = part.type === 'file' && part.file.file_id !== undefined
  if (part.type in partFeatures && !isStored)
    requireFeature(true, partFeatures[part.type as keyof typeof partFeatures], param)
}

/** `$schema` only names the dialect; grammar builders stumble over it. */
function formatFor(format: NonNullable<ChatRequest['response_format']>, { jsonObject }: EngineTraits): unknown {
  if (format.type === 'json_object' && jsonObject === 'schema')
    return { type: 'json_schema', json_schema: { name: 'object', schema: { type: 'object' } } }
  if (format.type !== 'json_schema' || !format.json_schema.schema || !('$schema' in format.json_schema.schema))
    return format
  const { $schema: _dialect, ...schema } = format.json_schema.schema
  return { ...format, json_schema: { ...format.json_schema, schema } }
}

/** Shapes an engine's whole answer for the caller: complete, with valid counts and the public name of the model. */
export function shapeChat(bytes: Uint8Array, answerFormat: ChatAnswerFormat): CallerAnswer {
  const answer = parseAnswer(bytes)
  if (!Array.isArray(answer.choices) || answer.choices.length === 0) throw engineFault('without choices')
  const usage = answerUsage(answerUsageObject(answer))
  const response: ChatResponse = {
    ...answerHead(answer, { object: 'chat.completion', prefix: 'chatcmpl', modelId: answerFormat.modelId }),
    choices: answer.choices.map((choice: unknown, at) => shapeChoice(choice, at, answerFormat)),
    usage: usageBody(usage),
    service_tier: 'default',
    system_fingerprint: fingerprintOf(answer),
  }
  return { body: JSON.stringify(response), usage }
}

type Choice = ChatResponse['choices'][number]

function shapeChoice(value: unknown, at: number, answerFormat: ChatAnswerFormat): Choice {
  const choice = (value ?? {}) as Record<string, unknown>
  const sentMessage = (choice.message ?? {}) as Record<string, unknown>
  const calls = listOf(sentMessage.tool_calls).map(shapeCall)
  const content = answerText(sentMessage.content)
  const refusal = typeof sentMessage.refusal === 'string' ? sentMessage.refusal : null
  const reasoning = answerText(sentMessage.reasoning_content) ?? answerText(sentMessage.reasoning)
  // Null is an answer without text; an absent content is invalid.
  if (
    content === undefined &&
    sentMessage.content !== null &&
    calls.length === 0 &&
    refusal === null &&
    reasoning === undefined
  )
    throw engineFault('a choice without content')
  const message: Choice['message'] = {
    role: 'assistant',
    content: content ?? (calls.length > 0 || refusal !== null ? null : ''),
    refusal,
    annotations: [],
  }
  if (reasoning) message.reasoning_content = reasoning
  if (calls.length > 0 && answerFormat.legacyFunctions) message.function_call = calls[0]!.function
  else if (calls.length > 0) message.tool_calls = calls
  const ended = finishReason(choice.finish_reason) ?? (calls.length > 0 ? 'tool_calls' : 'stop')
  return {
    index: typeof choice.index === 'number' ? tokenCount(choice.index) : at,
    message,
    logprobs: chatLogprobs(choice.logprobs),
    finish_reason: answerFormat.legacyFunctions && ended === 'tool_calls' ? 'function_call' : ended,
  }
}

function shapeCall(value: unknown) {
  const call = (value ?? {}) as { id?: unknown; function?: { name?: unknown; arguments?: unknown } }
  const given = call.function?.arguments
  if (typeof call.function?.name !== 'string') throw engineFault('a tool call without a name')
  return {
    id: typeof call.id === 'string' && call.id ? call.id : `call_${ulid()}`,
    type: 'function' as const,
    function: { name: call.function.name, arguments: typeof given === 'string' ? given : JSON.stringify(given ?? {}) },
  }
}

const stopsOf = (stop: unknown): unknown => (typeof stop === 'string' ? stop.split(',').filter(Boolean) : stop)

/** Predictions that are answered by a chat completion: the output is its text, in a list. */
const chatPrediction: TaskPrediction = {
  media: [],
  request(input) {
    const { prompt, system_prompt, messages } = input
    const system = typeof system_prompt === 'string' && system_prompt !== ''
    return presentMembers({
      messages: messages ?? [
        ...(system ? [{ role: 'system', content: system_prompt }] : []),
        { role: 'user', content: prompt ?? '' },
      ],
      max_completion_tokens: firstOf(input, 'max_tokens', 'max_new_tokens', 'max_completion_tokens'),
      temperature: input.temperature,
      top_p: input.top_p,
      top_k: input.top_k,
      seed: input.seed,
      presence_penalty: input.presence_penalty,
      frequency_penalty: input.frequency_penalty,
      stop: stopsOf(firstOf(input, 'stop', 'stop_sequences')),
    })
  },
  output: result => [(result as ChatResponse).choices[0]?.message.content ?? ''],
}

/** The record of chat completions. */
export const chatTask: TextTaskRecord = {
  ...chatCompletion,
  ...textTask,
  family: 'chat',
  aliases: ['std/chat', 'std/chat-completions'],
  description: 'Ask a chat model of this server. Returns its answer to the messages.',
  path: '/std/v1/chat/completions',
  features: [
    ...samplingFeatures,
    ...(['tools', 'json_object', 'json_schema', 'images', 'audio', 'files', 'chat_template_kwargs'] as const),
  ],
  trial: 'infer run MODEL "Hello"',
  test: testOfStream({ messages: [{ role: 'user', content: sampleText }], max_tokens: 64 }),
  sample: { messages: [{ role: 'user', content: sampleText }], max_tokens: 64 },
  form: { panel: 'conversation', hidden: [], first: [] },
  request: ChatRequest,
  otherFields: {
    audio: null,
    modalities: null,
    moderation: null,
    prediction: null,
    prompt_cache_key: null,
    prompt_cache_retention: null,
    safety_identifier: null,
    service_tier: null,
    store: null,
    verbosity: null,
    web_search_options: null,
  },
  result: ChatResponse,
  metering: textMetering,
  isMediaPath: path => path.at(-1) === 'url' && path.at(-2) === 'image_url',
  isRepeatable: isRepeatableSample,
  prediction: chatPrediction,
  prepare: prepareChat,
  shape: (answers, answerFormat: ChatAnswerFormat) => shapeChat(answers[0]!, answerFormat),
}
