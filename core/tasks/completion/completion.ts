import { invalid } from '../../failure.ts'
import type { ModelSet } from '../../models/engine-traits.ts'
import { CompletionRequest, CompletionResponse } from '../../schemas/completion.ts'
import { parsed } from '../../schemas/issues.ts'
import { extraFields, featureCheck, modelFor, type RequireFeature } from '../catalog.ts'
import type { ChoiceState, ChunkPiece } from '../chat/chat-chunk.ts'
import type { CallerAnswer, PreparedRequest } from '../engine-request.ts'
import { textMetering } from '../metering.ts'
import { withDefaults } from '../profile.ts'
import {
  answerHead,
  engineFault,
  fingerprintOf,
  finishReason,
  parseAnswer,
  tokenCount,
  usageBody,
  usageOfAll,
} from '../protocols/answer.ts'
import { completionLogprobs } from '../protocols/logprobs.ts'
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

/** Names the task. */
export const completion = { id: 'std/completion', title: 'completions' } as const satisfies TaskName

export interface CompletionAnswerFormat {
  task: typeof completion.id
  modelId: string
  includeUsage: boolean
  /** Choices for each prompt of one request to the engine. */
  choices: number
}

/** Fields that are not copied to the engine's request: infer uses or translates them, or they are about the caller. */
const kept = new Set(['user', 'stream_options', 'model', 'prompt', 'n', 'best_of', 'echo', 'suffix'])

/** OpenAI's default. Engines have others, up to the end of the context. */
const defaultTokens = 16

/** Checks a completion body and translates it for the engine. Throws Failure for an invalid body. */
export function prepareCompletion(raw: unknown, catalog: ModelSet): PreparedRequest {
  const sent = parsed(CompletionRequest, raw)
  const entry = modelFor(completion, sent.model, catalog)
  const request = entry.profile ? withDefaults(sent, entry.profile, ['reasoning_effort']) : sent
  checkTogether(request)
  requireFeatures(request, featureCheck(entry))
  const { promptLists, upstreamId } = entry.traits
  const stream = request.stream === true
  const prompts = promptsOf(request.prompt)
  if (stream && prompts.length > 1 && !promptLists)
    throw invalid(
      'prompt',
      `The engine of '${entry.id}' (${entry.engine}) streams one prompt at a time. Send the ${prompts.length} prompts one by one, or without stream.`,
      'unsupported_parameter',
    )
  const body = engineBody(upstreamId, request, kept)
  // Default values are left out, because some engines refuse these fields whatever their value.
  if ((request.n ?? 1) > 1) body.n = request.n
  if ((request.best_of ?? 1) > 1) body.best_of = request.best_of
  if (request.echo) body.echo = true
  if (request.suffix) body.suffix = request.suffix
  body.max_tokens = request.max_tokens ?? defaultTokens
  const unstored = (raw as { store?: unknown }).store === false
  if (unstored && entry.traits.savesConversations) body.store = false
  if (stream) Object.assign(body, streamOptions(entry.traits.streamUsage))
  // Members are added to the body, and none may be there twice.
  else delete body.stream
  Object.assign(body, extraFields(raw, entry))
  const plain = prompts.length === 1 && isPlain(request)
  const asStream = stream || !plain ? undefined : streamedMembers(entry.traits.streamUsage)
  const calls = promptLists ? [request.prompt] : prompts
  return {
    ...(unstored && { unstored }),
    ...(wantsSeveral(body) && { several: true as const }),
    modelId: entry.id,
    path: entry.traits.routes.complete!.path,
    bodies: calls.map(prompt => JSON.stringify({ ...body, prompt })),
    stream,
    asStream,
    answerFormat: {
      task: completion.id,
      modelId: entry.id,
      includeUsage: request.stream_options?.include_usage === true,
      choices: request.n ?? 1,
    },
  }
}

/** Whether the answer is only one text. */
const isPlain = ({ n, best_of, logprobs, echo }: CompletionRequest): boolean =>
  (n ?? 1) === 1 && (best_of ?? 1) === 1 && logprobs == null && !echo

/** A prompt is a text or a list of token ids; several come as a list of those. */
const promptsOf = (prompt: CompletionRequest['prompt']): (string | number[])[] =>
  typeof prompt === 'string' || typeof prompt[0] === 'number' ? [prompt as string | number[]] : (prompt as string[])

function checkTogether(request: CompletionRequest): void {
  checkStreamOptions(request)
  if (request.max_tokens === 0 && !request.echo)
    throw invalid('max_tokens', "'max_tokens' of 0 asks for nothing but the prompt: that needs echo: true.")
  const best = request.best_of
  if (best == null) return
  if (best < (request.n ?? 1))
    throw invalid('best_of', "'best_of' must be at least 'n': the best of so many are returned.")
  if (best > (request.n ?? 1) && request.stream)
    throw invalid('best_of', "'best_of' cannot be streamed: which is best is known at the end.")
}

/** Checks everything that the request may use beyond continuing a text. */
function requireFeatures(request: CompletionRequest, requireFeature: RequireFeature): void {
  requireFeature(request.echo, 'echo')
  requireFeature(request.suffix, 'suffix')
  requireFeature((request.best_of ?? 1) > (request.n ?? 1), 'best_of')
  requireFeature(request.logprobs != null, 'logprobs')
  checkSampling(request, requireFeature)
}

/** Shapes the engine's answers, one for each request to it, for the caller. */
export function shapeCompletion(bytes: Uint8Array[], answerFormat: CompletionAnswerFormat): CallerAnswer {
  const answers = bytes.map(parseAnswer)
  const [first] = answers
  const usage = usageOfAll(answers)
  const response: CompletionResponse = {
    ...answerHead(first!, { object: 'text_completion', prefix: 'cmpl', modelId: answerFormat.modelId }),
    choices: answers.flatMap((answer, at) => choicesOf(answer, answers.length > 1 ? at * answerFormat.choices : 0)),
    usage: usageBody(usage),
    system_fingerprint: fingerprintOf(first!),
  }
  return { body: JSON.stringify(response), usage }
}

function choicesOf({ choices }: Record<string, unknown>, from: number): CompletionResponse['choices'] {
  if (!Array.isArray(choices) || choices.length === 0) throw engineFault('without choices')
  return choices.map((value: unknown, at) => {
    const choice = (value ?? {}) as Record<string, unknown>
    if (typeof choice.text !== 'string') throw engineFault('a choice without text')
    const reason = finishReason(choice.finish_reason)
    return {
      text: choice.text,
      index: from + (typeof choice.index === 'number' ? tokenCount(choice.index) : at),
      logprobs: completionLogprobs(choice.logprobs),
      finish_reason: reason === 'length' || reason === 'content_filter' ? reason : 'stop',
    }
  })
}

/** Shapes a piece of a completion choice, without its index and finish reason. */
export function shapeCompletionText(choice: Record<string, unknown>, state: ChoiceState): ChunkPiece {
  const text = typeof choice.text === 'string' ? choice.text : ''
  const logprobs = completionLogprobs(choice.logprobs, state.length)
  state.begun = true
  state.length += text.length
  return { choice: { text, logprobs }, says: text !== '' || logprobs !== null }
}

/** The record of completions. */
export const completionTask: TextTaskRecord = {
  ...completion,
  ...textTask,
  family: 'completion',
  aliases: ['std/completions'],
  description: 'Continue a text with a language model of this server.',
  path: '/std/v1/completions',
  features: [...samplingFeatures, 'echo', 'suffix', 'best_of'],
  trial: 'infer run MODEL "Hello"',
  test: testOfStream({ prompt: 'The capital of France is', max_tokens: 32 }),
  sample: { prompt: sampleText, max_tokens: 32 },
  form: { panel: 'text', hidden: [], first: ['prompt'] },
  request: CompletionRequest,
  result: CompletionResponse,
  metering: textMetering,
  isRepeatable: isRepeatableSample,
  prepare: prepareCompletion,
  shape: (answers, answerFormat: CompletionAnswerFormat) => shapeCompletion(answers, answerFormat),
}
