import { z } from 'zod'
import { type LoadRequest, loadRequestOf } from '../../../core/dialects/ollama/ollama-body.ts'
import {
  OllamaChatRequest,
  OllamaEmbeddingsRequest,
  OllamaEmbedRequest,
  OllamaGenerateRequest,
} from '../../../core/dialects/ollama/ollama-schemas.ts'
import { Failure } from '../../../core/failure.ts'
import { scopeRefusal } from '../../http/access/auth.ts'
import { ownsMachine, requireMachineOwner } from '../../http/access/machine-owner.ts'
import type { Call } from '../../http/request/call.ts'
import { errorGroups } from '../../http/request/error-groups.ts'
import type { Owners } from '../../http/request/owners.ts'
import { route } from '../../http/request/route.ts'
import { type InferenceOwners, inferAs } from '../../work/inference.ts'
import { findOllamaModel } from './models.ts'
import { ollamaRoute } from './ollama-route.ts'

export type OllamaChatOwners = InferenceOwners & Pick<Owners, 'fleet'>

const Answer = z
  .looseObject({
    model: z.string().describe('Name of the model, as it was requested.'),
    created_at: z.string().describe('ISO 8601, UTC.'),
    message: z.record(z.string(), z.unknown()).optional().describe('What the model said, of a chat.'),
    response: z.string().optional().describe('What the model said, of a generation.'),
    thinking: z.string().optional().describe('What it thought before.'),
    done: z.boolean().describe('Whether this is the last line, or the whole answer. Only it has the members below.'),
    done_reason: z.string().optional().describe('`stop`, `length`, `load` or `unload`.'),
    total_duration: z.int().optional().describe('Nanoseconds from the request to here.'),
    load_duration: z.int().optional().describe('Nanoseconds until a slot was free; loading of the model included.'),
    prompt_eval_count: z.int().optional().describe('Tokens of the prompt.'),
    prompt_eval_duration: z
      .int()
      .optional()
      .describe('Nanoseconds until the first token, of a stream. Otherwise 0: they are part of `eval_duration`.'),
    eval_count: z.int().optional().describe('Tokens of the answer.'),
    eval_duration: z.int().optional().describe('Nanoseconds to generate them.'),
  })
  .meta({ id: 'OllamaAnswer', description: "A line of a streamed answer, or a whole answer, in Ollama's form." })
const Embedded = z
  .object({
    model: z.string().describe('Name of the model, as it was requested.'),
    embeddings: z.array(z.array(z.number())).describe('One vector for each text.'),
    total_duration: z.int().describe('Nanoseconds from the request to here.'),
    load_duration: z.int().describe('Nanoseconds until a slot was free; loading of the model included.'),
    prompt_eval_count: z.int().describe('Tokens of the texts.'),
  })
  .meta({ id: 'OllamaEmbeddings', description: "Vectors of texts, in Ollama's form." })
const OneEmbedded = z
  .object({ embedding: z.array(z.number()).describe('The vector.') })
  .meta({ id: 'OllamaEmbedding', description: "The vector of a text, in Ollama's older form." })

/**
 * Unloads a model for the machine's owner; throws Failure `insufficient_scope` or `organization_mismatch` for others,
 * because it affects all organizations. Loads it for the owner too; for others the first request loads it, through
 * admission and the queue.
 */
async function load({ modelId, name, unload }: LoadRequest, call: Call, { fleet, registry }: OllamaChatOwners) {
  const model = findOllamaModel(name, call, { registry })
  const refused = scopeRefusal(call.caller, 'admin:write')
  if (unload) {
    if (refused) throw refused
    requireMachineOwner(call, 'Unloading of models is')
    await fleet.unload(modelId)
  } else if (!refused && ownsMachine(call)) {
    await fleet.load(model)
    call.signal.throwIfAborted()
  }
}

/** Answers a request; one without content loads or unloads the model. `said` is the member of an empty answer. */
const answering =
  (form: 'ollama-chat' | 'ollama-generate', said: object, owners: OllamaChatOwners) =>
  async (call: Call): Promise<void> => {
    try {
      await inferAs(form, owners)(call)
    } catch (thrown) {
      const request = thrown instanceof Failure ? loadRequestOf(thrown) : undefined
      if (!request) throw thrown
      await load(request, call, owners)
      const answer = {
        model: request.name,
        created_at: new Date().toISOString(),
        ...said,
        done: true,
        done_reason: request.unload ? 'unload' : 'load',
      }
      const type = request.stream ? 'application/x-ndjson' : 'application/json'
      call.send(200, `${JSON.stringify(answer)}${request.stream ? '\n' : ''}`, type)
    }
  }

const facts = {
  ...ollamaRoute,
  method: 'POST',
  scope: 'user:write',
  bucket: 'jobs',
} as const
const codes = [...errorGroups.submit, ...errorGroups.wait] as const
const streamed =
  'The answer is lines of JSON, unless `stream` is false. Without content the model is loaded, or unloaded with `keep_alive: 0`; both need `admin:write` of the organization that owns the machine, and others get the answer without an effect on what is loaded, or 403 for unloading.'
const media = ['application/x-ndjson'] as const

/** The routes for text in Ollama's form. */
export const ollamaChatRoutes = (owners: OllamaChatOwners) => [
  route({
    ...facts,
    path: '/ollama/api/chat',
    summary: 'Create chat message',
    description: `Answers a conversation in Ollama's form: with tools, images in base64, thinking, and answers by a JSON Schema. ${streamed}`,
    errorCodes: [...codes, ...errorGroups.media, 'organization_mismatch'],
    media,
    body: OllamaChatRequest,
    example: { model: 'infer/tiny-chat', messages: [{ role: 'user' as const, content: 'Hello!' }], stream: false },
    response: Answer,
    answer: answering('ollama-chat', { message: { role: 'assistant', content: '' } }, owners),
  }),
  route({
    ...facts,
    path: '/ollama/api/generate',
    summary: 'Create text',
    description: `Answers a prompt in Ollama's form, as a conversation of one message. ${streamed}`,
    errorCodes: [...codes, ...errorGroups.media, 'organization_mismatch'],
    media,
    body: OllamaGenerateRequest,
    example: { model: 'infer/tiny-chat', prompt: 'Hello!', stream: false },
    response: Answer,
    answer: answering('ollama-generate', { response: '' }, owners),
  }),
  route({
    ...facts,
    path: '/ollama/api/embed',
    summary: 'Create embeddings',
    description: "Turns texts into vectors, in Ollama's form.",
    errorCodes: codes,
    body: OllamaEmbedRequest,
    example: { model: 'infer/tiny-embed', input: ['A cat sat on the mat.'] },
    response: Embedded,
    answer: inferAs('ollama-embed', owners, { task: 'std/embeddings' }),
  }),
  route({
    ...facts,
    path: '/ollama/api/embeddings',
    summary: 'Create embedding',
    description: "Turns one text into a vector, in Ollama's older form.",
    errorCodes: codes,
    body: OllamaEmbeddingsRequest,
    example: { model: 'infer/tiny-embed', prompt: 'A cat sat on the mat.' },
    response: OneEmbedded,
    answer: inferAs('ollama-embeddings', owners, { task: 'std/embeddings' }),
  }),
]
