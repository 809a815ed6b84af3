import { z } from 'zod'
import { Failure } from '../../../core/failure.ts'
import type { Log } from '../../../core/log.ts'
import { isFor, type Operation, operationOf, textTasks } from '../../../core/schemas/task.ts'
import { type Handler, type Handlers, listModel } from '../http.ts'
import { parsedCall } from '../parsed-call.ts'
import { openChat } from './chat.ts'
import { openCompletions } from './completions.ts'
import { checkPooling, openEmbedder, openEmbeddings } from './embeddings.ts'
import { openGeneration } from './generation.ts'
import { attemptNative, firstToken, type LoadedModel } from './model.ts'
import { noMutex, openMutex } from './mutex.ts'
import type { GgufEngineOptions } from './options.ts'
import { openRanker, openRerank } from './rerank.ts'
import { openScore, scoreByRanker, scoreByVectors } from './score.ts'
import { openTemplate } from './template.ts'
import { openVocabulary, type Vocabulary } from './vocabulary.ts'

/** The built-in engine has no classifiers: models that answer chats moderate through them. */
const routes = {
  chat: 'POST /v1/chat/completions',
  complete: 'POST /v1/completions',
  embed: 'POST /v1/embeddings',
  rerank: 'POST /v1/rerank',
  score: 'POST /v1/score',
} as const satisfies Partial<Record<Operation, string>>
type Served = keyof typeof routes

/**
 * Creates the contexts for the tasks, tests each with a token, and returns the handlers. Other tasks are refused.
 * `idle` resolves when no computation for an ended request is running. Throws Failure `worker_error` if the model
 * cannot do one of the tasks.
 */
export async function openHandlers(loaded: LoadedModel, options: GgufEngineOptions, log: Log) {
  const { model } = loaded
  const { id, tasks, threads } = options
  const wants = (...operations: Served[]) => isFor(tasks, ...operations)
  const vocabulary = openVocabulary(model)
  const handlers: Partial<Record<Served, Handler>> = {}
  const ranks = model.fileInsights.supportsRanking
  const context = loaded.sizing.encoderContext
  // A text must be shorter than its context, and an encoder must compute it in one batch.
  const encoder = { threads, contextSize: context + 1, batchSize: context + 1 }

  const exclusive = loaded.llama.gpu === 'vulkan' ? openMutex() : noMutex
  const generation = wants('chat', 'complete')
    ? await openGeneration(loaded, options, vocabulary, exclusive, log)
    : undefined
  if (generation) {
    const fingerprint = `fp_gguf-${loaded.llama.llamaCppRelease.release}`
    const parts = { id, fingerprint, model, vocabulary, ...generation }
    if (wants('chat')) handlers.chat = openChat({ ...parts, template: templateOf(model, vocabulary) })
    if (wants('complete')) handlers.complete = openCompletions(parts)
  }
  if (wants('embed') || (wants('score') && !ranks)) {
    checkPooling(model)
    const embedding = await attemptNative('The model cannot make embeddings', () =>
      model.createEmbeddingContext(encoder),
    )
    const embedder = openEmbedder(model, embedding, vocabulary.size, context, exclusive)
    await attemptNative('The model cannot make embeddings', () => embedder.embed([firstToken(model)]))
    if (wants('embed')) handlers.embed = openEmbeddings({ id, context, embedder })
    if (wants('score') && !ranks) handlers.score = openScore({ id, context, scorePairs: scoreByVectors(embedder) })
  }
  if (wants('rerank') || (wants('score') && ranks)) {
    const ranking = await attemptNative('The model cannot rerank', () => model.createRankingContext(encoder))
    const ranker = openRanker(model, ranking, context, exclusive)
    await attemptNative('The model cannot rerank', () => ranker.score(ranker.pair([firstToken(model)], 'a', 'a', null)))
    if (wants('rerank')) handlers.rerank = openRerank({ id, context, ranker })
    if (wants('score') && ranks) handlers.score = openScore({ id, context, scorePairs: scoreByRanker(ranker) })
  }

  const unable =
    (operation: Served): Handler =>
    () => {
      const task = textTasks.find(one => operationOf(one) === operation)
      throw new Failure('unsupported_task', `This engine was started for ${tasks.join(', ')}, not for ${task}.`)
    }
  const served = (Object.keys(routes) as Served[]).map(one => [routes[one], handlers[one] ?? unable(one)] as const)
  return {
    handlers: {
      'GET /v1/models': listModel(id, 'infer'),
      ...(generation?.conversations && conversationRoutes(generation.conversations)),
      ...Object.fromEntries(served),
    },
    idle: async () => generation?.idle(),
  }
}

const SaveRequest = z.object({ max_bytes: z.record(z.string(), z.number().min(0)), max_ms: z.number().min(0) })

/** The routes by which the server has conversations saved. */
const conversationRoutes = ({ pending, save }: Conversations): Handlers => ({
  'GET /conversations': async (_body, reply) => reply.json({ conversations: await pending() }),
  'POST /conversations': async (body, reply) => {
    const { max_bytes: maxBytes, max_ms: maxMs } = parsedCall(SaveRequest, body)
    reply.json(await save({ maxBytes, maxMs }))
  },
})

type Conversations = NonNullable<Awaited<ReturnType<typeof openGeneration>>['conversations']>

function templateOf(model: LoadedModel['model'], { controls }: Vocabulary) {
  const { bosString: bos, eosString: eos } = model.tokens
  return openTemplate({ source: model.fileInfo.metadata.tokenizer.chat_template, bos, eos, controls })
}
