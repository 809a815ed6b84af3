import { createHash } from 'node:crypto'
import { z } from 'zod'
import { needed } from '../../../core/dialects/chat-terms.ts'
import { modelOf } from '../../../core/dialects/ollama/ollama-body.ts'
import { engineFacts } from '../../../core/models/engine-facts.ts'
import type { ResidentSnapshot } from '../../../core/models/fleet.ts'
import type { GgufHeader } from '../../../core/models/gguf-header.ts'
import type { Model } from '../../../core/models/model.ts'
import type { ListedModel } from '../../../core/models/model-names.ts'
import { anyObject, array, integer, namedObject, nullish, object, string } from '../../../core/schemas/fields.ts'
import { isFor } from '../../../core/schemas/task.ts'
import type { ClientExchange } from '../../http/request/exchange.ts'
import type { Owners } from '../../http/request/owners.ts'
import { modelNotFound, visibleModels } from '../../work/allowed-models.ts'
import { ollamaRoute } from './ollama-route.ts'

const units = [
  ['B', 1e9],
  ['M', 1e6],
  ['K', 1e3],
] as const

/** Returns a number of parameters as Ollama writes it, such as `8.2B`. */
export function parameterSize(count: number): string {
  const [unit, size] = units.find(([, least]) => count >= least) ?? ['', 1]
  return `${Number((count / size).toFixed(1))}${unit}`
}

/** Returns the details of a model by the header of its file. */
const headerDetails = ({ architecture, sizeLabel, parameterCount, quantization }: GgufHeader) => ({
  family: architecture,
  families: [architecture],
  parameter_size: sizeLabel ?? parameterSize(parameterCount),
  quantization_level: quantization ?? '',
})

/** Returns the fields of the header under the names that they have in the file. Those that it lacks are left out. */
function headerInfo(header: GgufHeader): Record<string, string | number> {
  const { architecture } = header
  const fields: Record<string, string | number | null> = {
    'general.architecture': architecture,
    'general.name': header.name,
    'general.parameter_count': header.parameterCount,
    'general.size_label': header.sizeLabel,
    [`${architecture}.context_length`]: header.contextLength,
    [`${architecture}.embedding_length`]: header.embeddingLength,
    [`${architecture}.feed_forward_length`]: header.feedForwardLength,
    [`${architecture}.block_count`]: header.blockCount,
    [`${architecture}.attention.head_count`]: header.headCount,
    [`${architecture}.attention.head_count_kv`]: header.headCountKv.length > 0 ? Math.max(...header.headCountKv) : null,
    [`${architecture}.attention.key_length`]: header.keyLength,
    [`${architecture}.attention.value_length`]: header.valueLength,
    [`${architecture}.attention.sliding_window`]: header.slidingWindow,
    [`${architecture}.vocab_size`]: header.vocabularySize,
    [`${architecture}.expert_count`]: header.expertCount,
    [`${architecture}.expert_used_count`]: header.expertUsedCount,
  }
  return Object.fromEntries(
    Object.entries(fields).filter((field): field is [string, string | number] => field[1] !== null),
  )
}

const Details = object('What is known of its file.', {
  parent_model: string('Always empty.'),
  format: string('`gguf`, or the name of the engine.'),
  family: string('Architecture; empty without a GGUF file.'),
  families: array('The same as a list.', z.string()),
  parameter_size: string('Number of parameters such as `8.2B`; empty without a GGUF file.'),
  quantization_level: string('Quantization such as `Q4_K_M`; empty without a GGUF file.'),
})

const listed = {
  name: string('Id of the model.'),
  model: string('The same as `name`.'),
  size: integer('Bytes of memory that it uses or is set to use; 0 if unknown.'),
  digest: string('A hash of its name and engine.'),
  details: Details,
}
const Tags = namedObject('OllamaModels', 'Models that the token may use.', {
  models: array(
    'The models.',
    z.object({ ...listed, modified_at: string('When the configuration was last read, ISO 8601.') }),
  ),
})
const Running = namedObject('OllamaRunningModels', 'Models that are loaded.', {
  models: array(
    'The models.',
    z.object({
      ...listed,
      size_vram: integer('Bytes of GPU memory.'),
      expires_at: string('When it is unloaded if no further request comes, ISO 8601.'),
      context_length: integer('Most tokens of a request and its answer together; 0 if unknown.'),
    }),
  ),
})

const Show = namedObject('OllamaShowRequest', 'The model to describe.', {
  model: nullish(z.string().min(1).max(256), 'Id of the model.'),
  name: nullish(z.string().min(1).max(256), 'The same as `model`, as older clients send it.'),
})
const Shown = namedObject('OllamaModel', 'A model.', {
  license: string('Licence, as the file of the model names it.'),
  modelfile: string('Always empty.'),
  parameters: string('`num_ctx` if `infer.yaml` sets `context_length`.'),
  template: string('Chat template of the file, in Jinja.'),
  details: Details,
  model_info: anyObject(
    'Fields of the header of its GGUF file, such as `general.parameter_count`; without such a file `general.architecture` is `infer`. `infer.context_length` if `infer.yaml` sets it.',
  ),
  capabilities: array('`completion`, `tools`, `vision` and `embedding`, as far as its engine can.', z.string()),
  modified_at: string('When the configuration was last read, ISO 8601.'),
})

type ModelOwners = Owners<'cpu' | 'fleet' | 'registry'>

/** Whether Ollama's clients can use a model. */
const isUsable = ({ tasks }: Pick<Model, 'tasks'>) => isFor(tasks, 'chat', 'embed')

const detailsOf = ({ engine }: Model, header: GgufHeader | undefined): z.input<typeof Details> => ({
  parent_model: '',
  format: engineFacts(engine).reads === 'gguf' ? 'gguf' : engine,
  family: '',
  families: [],
  parameter_size: '',
  quantization_level: '',
  ...(header ? headerDetails(header) : {}),
})

/** The headers that were read, until the configuration is read again. */
const headers = new WeakMap<Model, Promise<GgufHeader>>()

/** Returns the header of the model's file; undefined if it has none that can be read here. */
async function headerOf(model: Model, { cpu }: Owners<'cpu'>): Promise<GgufHeader | undefined> {
  const { engine, source } = model
  if (engineFacts(engine).reads !== 'gguf' || !source?.endsWith('.gguf')) return undefined
  const read = headers.get(model) ?? cpu.ggufHeader(source)
  headers.set(model, read)
  return read.catch(() => {
    // The file may have been removed or damaged since, and may be repaired; loading the model says so.
    headers.delete(model)
    return undefined
  })
}

const listedOf = async (model: Model, bytes: number, owners: Owners<'cpu'>) => ({
  name: model.id,
  model: model.id,
  size: Math.round(bytes),
  digest: createHash('sha256').update(`${model.id}\n${model.engine}`).digest('hex'),
  details: detailsOf(model, await headerOf(model, owners)),
})

/** Models that the token may use and that Ollama's clients can use. */
const visible = (exchange: ClientExchange, owners: Owners<'registry'>): ListedModel[] =>
  visibleModels(exchange, owners).filter(isUsable)

/** Finds a model by the name that a client uses. Throws Failure `model_not_found`. */
export function findOllamaModel(name: string, exchange: ClientExchange, owners: Owners<'registry'>): ListedModel {
  const models = visible(exchange, owners)
  const model = models.find(({ id }) => id === modelOf(name))
  if (model) return model
  throw modelNotFound(name.slice(0, 128), models, '/ollama/api/tags')
}

/** A time that no model outlives, for models that are kept loaded. */
const never = '2318-01-01T00:00:00.000Z'

const expiryOf = ({ idle_ttl, replicas }: Model, { lastUsedAt }: ResidentSnapshot) =>
  idle_ttl === 0 || replicas.min > 0 ? never : new Date(lastUsedAt + idle_ttl).toISOString()

export const ollamaModelRoutes = (owners: ModelOwners) => [
  ollamaRoute('GET /ollama/api/tags', 'user:read', {
    summary: 'List models',
    description: 'Returns the chat and embedding models that the token may use.',
    response: Tags,
    handle: async (_, exchange) => {
      const { residents } = owners.fleet.snapshot()
      const modified_at = new Date(owners.registry.readAt).toISOString()
      const models = []
      // One at a time: a list of hundreds would fill the queue of the thread that reads headers.
      for (const model of visible(exchange, owners)) {
        const bytes = residents.find(({ modelId }) => modelId === model.modelId)?.bytes ?? model.memory ?? 0
        models.push({ ...(await listedOf(model, bytes, owners)), modified_at })
      }
      return { models }
    },
  }),
  ollamaRoute('GET /ollama/api/ps', 'user:read', {
    summary: 'List loaded models',
    description: 'Returns the models that are loaded, among those that the token may use.',
    response: Running,
    handle: async (_, exchange) => {
      // Under its id, unless the token may only use another name.
      const allowed = new Map(
        visible(exchange, owners)
          .toReversed()
          .map(model => [model.modelId, model]),
      )
      const ready = owners.fleet.snapshot().residents.filter(one => one.state === 'ready' && allowed.has(one.modelId))
      const models = []
      for (const resident of ready) {
        const model = allowed.get(resident.modelId)!
        const onGpu = resident.devices.some(device => device !== 'cpu')
        models.push({
          ...(await listedOf(model, resident.bytes, owners)),
          size_vram: onGpu ? Math.round(resident.bytes) : 0,
          expires_at: expiryOf(model, resident),
          context_length: model.context_length ?? 0,
        })
      }
      return { models }
    },
  }),
  ollamaRoute('POST /ollama/api/show', 'user:read', {
    bucket: 'api',
    summary: 'Get model',
    description:
      'Returns what a model can do. Family, size, template (Jinja) and licence are read from its GGUF file, where it has one.',
    errorCodes: ['model_not_found'],
    body: Show,
    example: { model: 'infer/tiny-chat' },
    response: Shown,
    handle: async ({ body }, exchange) => {
      const model = findOllamaModel(needed(body.model ?? body.name, 'model'), exchange, owners)
      const header = await headerOf(model, owners)
      const features = owners.registry.catalog().get(model.id)?.traits.features ?? new Set<string>()
      const chats = isFor(model.tasks, 'chat')
      const capabilities = [
        ...(chats ? ['completion'] : []),
        ...(chats && features.has('tools') ? ['tools'] : []),
        ...(chats && features.has('images') ? ['vision'] : []),
        ...(isFor(model.tasks, 'embed') ? ['embedding'] : []),
      ]
      return {
        license: header?.license ?? '',
        modelfile: '',
        parameters: model.context_length == null ? '' : `num_ctx ${model.context_length}`,
        template: header?.chatTemplate ?? '',
        details: detailsOf(model, header),
        model_info: {
          ...(header ? headerInfo(header) : { 'general.architecture': 'infer' }),
          ...(model.context_length == null ? {} : { 'infer.context_length': model.context_length }),
        },
        capabilities,
        modified_at: new Date(owners.registry.readAt).toISOString(),
      }
    },
  }),
]
