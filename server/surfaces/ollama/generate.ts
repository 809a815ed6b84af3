import { z } from 'zod'
import { type LoadRequest, loadRequestOf } from '../../../core/dialects/ollama/ollama-body.ts'
import {
  OllamaChatRequest,
  OllamaEmbeddingsRequest,
  OllamaEmbedRequest,
  OllamaGenerateRequest,
} from '../../../core/dialects/ollama/ollama-schemas.ts'
import { Failure } from '../../../core/failure.ts'
import {
  array,
  boolean,
  integer,
  looseObject,
  namedObject,
  optional,
  optionalInteger,
  optionalString,
  string,
} from '../../../core/schemas/fields.ts'
import { scopeRefusal } from '../../http/access/auth.ts'
import { ownsMachine, requireMachineOwner } from '../../http/access/reach.ts'
import { errorGroups } from '../../http/request/errors.ts'
import type { ClientExchange } from '../../http/request/exchange.ts'
import type { Owners } from '../../http/request/owners.ts'
import { type InferenceOwners, infer, inferenceRouteOf } from '../../work/inference.ts'
import { findOllamaModel } from './models.ts'
import { ollamaRoute } from './ollama-route.ts'

export type OllamaChatOwners = InferenceOwners & Owners<'fleet'>

const Answer = looseObject('OllamaAnswer', "A line of a streamed answer, or a whole answer, in Ollama's form.", {
  model: string('Name of the model, as it was requested.'),
  created_at: string('ISO 8601, UTC.'),
  message: optional(z.record(z.string(), z.unknown()), 'What the model said, of a chat.'),
  response: optionalString('What the model said, of a generation.'),
  thinking: optionalString('What it thought before.'),
  done: boolean('Whether this is the last line, or the whole answer. Only it has the members below.'),
  done_reason: optionalString('`stop`, `length`, `load` or `unload`.'),
  total_duration: optionalInteger('Nanoseconds from the request to here.'),
  load_duration: optionalInteger('Nanoseconds until a slot was free; loading of the model included.'),
  prompt_eval_count: optionalInteger('Tokens of the prompt.'),
  prompt_eval_duration: optionalInteger(
    'Nanoseconds until the first token, of a stream. Otherwise 0: they are part of `eval_duration`.',
  ),
  eval_count: optionalInteger('Tokens of the answer.'),
  eval_duration: optionalInteger('Nanoseconds to generate them.'),
})
const Embedded = namedObject('OllamaEmbeddings', "Vectors of texts, in Ollama's form.", {
  model: string('Name of the model, as it was requested.'),
  embeddings: array('One vector for each text.', z.array(z.number())),
  total_duration: integer('Nanoseconds from the request to here.'),
  load_duration: integer('Nanoseconds until a slot was free; loading of the model included.'),
  prompt_eval_count: integer('Tokens of the texts.'),
})
const OneEmbedded = namedObject('OllamaEmbedding', "The vector of a text, in Ollama's older form.", {
  embedding: array('The vector.', z.number()),
})

/**
 * Unloads a model for the machine's owner; throws Failure `insufficient_scope` or `organization_mismatch` for others,
 * because it affects all organizations. Loads it for the owner too; for others the first request loads it, through
 * admission and the queue.
 */
async function load(request: LoadRequest, exchange: ClientExchange, { fleet, registry }: OllamaChatOwners) {
  const { name, unload } = request
  const { modelId } = findOllamaModel(name, exchange, { registry })
  const refused = scopeRefusal(exchange.caller, 'admin:write')
  if (unload) {
    if (refused) throw refused
    requireMachineOwner(exchange, 'Unloading of models is')
    await fleet.unload(modelId)
  } else if (!refused && ownsMachine(exchange)) {
    await fleet.load(registry.find(modelId)!)
    exchange.signal.throwIfAborted()
  }
}

/** Answers a request; one without content loads or unloads the model. `said` is the member of an empty answer. */
const answering =
  (dialect: 'ollama-chat' | 'ollama-generate', said: object, owners: OllamaChatOwners) =>
  async (exchange: ClientExchange): Promise<void> => {
    try {
      await infer({ dialect }, exchange, owners)
    } catch (thrown) {
      const request = thrown instanceof Failure ? loadRequestOf(thrown) : undefined
      if (!request) throw thrown
      await load(request, exchange, owners)
      const answer = {
        model: request.name,
        created_at: new Date().toISOString(),
        ...said,
        done: true,
        done_reason: request.unload ? 'unload' : 'load',
      }
      const type = request.stream ? 'application/x-ndjson' : 'application/json'
      exchange.send(200, `${JSON.stringify(answer)}${request.stream ? '\n' : ''}`, type)
    }
  }

const streamed =
  'The answer is lines of JSON, unless `stream` is false. Without content the model is loaded, or unloaded with `keep_alive: 0`; both need `admin:write` of the organization that owns the machine, and others get the answer without an effect on what is loaded, or 403 for unloading.'
const streamedFacts = {
  bucket: 'jobs',
  errorCodes: [...errorGroups.submit, ...errorGroups.wait, ...errorGroups.media, 'organization_mismatch'],
  media: ['application/x-ndjson'],
  response: Answer,
} as const

export const ollamaChatRoutes = (owners: OllamaChatOwners, inferenceRoute = inferenceRouteOf(ollamaRoute, owners)) => [
  ollamaRoute('POST /ollama/api/chat', 'user:write', {
    ...streamedFacts,
    summary: 'Create chat message',
    description: `Answers a conversation in Ollama's form: with tools, images in base64, thinking, and answers by a JSON Schema. ${streamed}`,
    body: OllamaChatRequest,
    example: { model: 'infer/tiny-chat', messages: [{ role: 'user' as const, content: 'Hello!' }], stream: false },
    answer: answering('ollama-chat', { message: { role: 'assistant', content: '' } }, owners),
  }),
  ollamaRoute('POST /ollama/api/generate', 'user:write', {
    ...streamedFacts,
    summary: 'Create text',
    description: `Answers a prompt in Ollama's form, as a conversation of one message. ${streamed}`,
    body: OllamaGenerateRequest,
    example: { model: 'infer/tiny-chat', prompt: 'Hello!', stream: false },
    answer: answering('ollama-generate', { response: '' }, owners),
  }),
  inferenceRoute('POST /ollama/api/embed', {
    dialect: 'ollama-embed',
    task: 'std/embeddings',
    summary: 'Create embeddings',
    description: "Turns texts into vectors, in Ollama's form.",
    body: OllamaEmbedRequest,
    example: { model: 'infer/tiny-embed', input: ['A cat sat on the mat.'] },
    response: Embedded,
  }),
  inferenceRoute('POST /ollama/api/embeddings', {
    dialect: 'ollama-embeddings',
    task: 'std/embeddings',
    summary: 'Create embedding',
    description: "Turns one text into a vector, in Ollama's older form.",
    body: OllamaEmbeddingsRequest,
    example: { model: 'infer/tiny-embed', prompt: 'A cat sat on the mat.' },
    response: OneEmbedded,
  }),
]
