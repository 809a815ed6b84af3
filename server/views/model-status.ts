import { z } from 'zod'
import type { QueueForecast } from '../../core/jobs/job-facts.ts'
import { ModelBenchmark } from '../../core/models/benchmark.ts'
import type { FleetSnapshot, ModelActivity } from '../../core/models/fleet.ts'
import type { Model } from '../../core/models/model.ts'
import type { ListedModel } from '../../core/models/model-names.ts'
import { hasPrice, imageQualities } from '../../core/models/price.ts'
import { firstSlugOf, slugsOf } from '../../core/models/slugs.ts'
import {
  array,
  boolean,
  integer,
  namedObject,
  nullable,
  nullableInteger,
  nullableString,
  number,
  object,
  oneOf,
  string,
} from '../../core/schemas/fields.ts'
import { regionLabels } from '../../core/schemas/region.ts'
import { Task } from '../../core/schemas/task.ts'
import { inputSchema } from '../../core/tasks/generation/input-schema.ts'
import { featuresByTask } from '../../core/tasks/registry.ts'
import type { Owners } from '../http/request/owners.ts'
import { EnginePlacement, placementView } from './engine-placement.ts'

export const ModelPrice = namedObject('ModelPrice', 'The prices of a model. What has no price costs 0.', {
  currency: string('ISO 4217 code of all amounts.'),
  input_per_million_tokens: number('Price of a million input tokens.'),
  cached_input_per_million_tokens: number('Price of a million input tokens from the cache.'),
  output_per_million_tokens: number('Price of a million output tokens.'),
  per_image: number('Price of an image for which `image_prices` has no entry.'),
  image_prices: array(
    'Prices of images by size and quality.',
    z.object({
      size: nullableString('`<width>x<height>`; null for any size.'),
      quality: nullable(z.enum(imageQualities), 'Quality that the request names; null for any.'),
      price: number('Price of such an image.'),
    }),
  ),
  per_video_second: number('Price of a second of video.'),
  per_audio_second: number('Price of a second of audio.'),
  per_thousand_characters: number('Price of a thousand characters that are turned into audio.'),
  per_thousand_documents: number('Price of a thousand documents or pairs.'),
  per_gpu_second: number('Price of a second of GPU time.'),
})

/** Returns the prices as API clients read them; null for a model whose work costs nothing. */
export function priceObject({ price }: Pick<Model, 'price'>, currency: string): z.input<typeof ModelPrice> | null {
  if (!hasPrice(price)) return null
  const input = price.input_per_million_tokens ?? 0
  return {
    currency,
    input_per_million_tokens: input,
    cached_input_per_million_tokens: price.cached_input_per_million_tokens ?? input,
    output_per_million_tokens: price.output_per_million_tokens ?? 0,
    per_image: price.per_image ?? 0,
    image_prices: (price.image_prices ?? []).map(({ size = null, quality = null, price: each }) => ({
      size,
      quality,
      price: each,
    })),
    per_video_second: price.per_video_second ?? 0,
    per_audio_second: price.per_audio_second ?? 0,
    per_thousand_characters: price.per_thousand_characters ?? input / 1000,
    per_thousand_documents: price.per_thousand_documents ?? 0,
    per_gpu_second: price.per_gpu_second ?? 0,
  }
}

/** Whether a model can be used now. */
export const modelState = oneOf(
  '`warm`: loaded. `loading`: being loaded. `cold`: loaded by the next request. `unavailable`: cannot be loaded now. `disabled`: switched off in `infer.yaml`.',
  ['warm', 'loading', 'cold', 'unavailable', 'disabled'],
)

/** Where the engines of a model run. */
export const modelRegion = nullable(
  z.enum(regionLabels),
  'Region in which its engines run, by `region` in `infer.yaml`; null if none is set.',
)

export const queueDepth = integer(
  'Requests and jobs that wait for the model; for a model of a peer, those that wait there too.',
)
export const etaSeconds = nullableInteger('Expected seconds until one more request would begin; null if unknown.')
export const capabilities = array('Optional request features of any of its tasks, such as `tools`.', z.string())

/** The features of any task, of those by task. */
export const capabilitiesIn = <F extends string>(features: Readonly<Record<string, readonly F[]>>): F[] => [
  ...new Set(Object.values(features).flat()),
]

/** How many requests wait for a model, and how long one more would: here, and with its peer. */
export const queueOf = (
  activity: ModelActivity | undefined,
  { waiting, etaMs }: Pick<QueueForecast, 'waiting' | 'etaMs'>,
) => {
  const expectedMs = etaMs ?? activity?.etaMs ?? null
  return {
    queue_depth: waiting + (activity?.elsewhere?.waiting ?? 0),
    eta_seconds: expectedMs === null ? null : Math.ceil(expectedMs / 1000),
  }
}

export const ModelStatus = namedObject('ModelStatus', 'The state of a model.', {
  model_id: string('Id of the model or adapter, or name of a profile.'),
  spec_id: string('Id of the model with the version of its description: `<model_id>@1`.'),
  profile_of: nullableString('Id of the model or adapter of which this is a profile; null for others.'),
  adapter_of: nullableString('Id of the base model of which this is an adapter; null for others.'),
  aliases: array('Further names of the model in requests.', z.string()),
  fallbacks: array(
    'Models that answer in its place, in their order.',
    z.object({
      model_id: string('Id of the model.'),
      when: array('`failed`: the model cannot serve. `context`: the prompt is too long for it.', z.string()),
      wait_ms: nullableInteger('Milliseconds; also when a request would wait longer. Null: however long it waits.'),
    }),
  ),
  enabled: boolean('Whether it is enabled in `infer.yaml`.'),
  tasks: array('Tasks that the model does.', Task),
  slug: nullableString('Path under `/slug` of its first task that has one; null if none has.'),
  slugs: z.record(z.string(), z.string()).describe('Paths under `/slug` by task.'),
  status: modelState,
  reason: nullableString('Why it is unavailable or not loaded, as a sentence; else null.'),
  engine: string('Engine preset, such as `gguf` or `vllm`.'),
  region: modelRegion,
  workers: object('Engines of the model.', {
    ready: integer('Loaded engines.'),
    loading: integer('Engines that load.'),
  }),
  placement: nullable(EnginePlacement, 'Where its first engine runs; null if none runs or loads.'),
  benchmark: nullable(ModelBenchmark, 'Its newest benchmark with its current settings; null before any.'),
  queue_depth: queueDepth,
  eta_seconds: etaSeconds,
  dispatch_wait_ms: nullableInteger(
    'Milliseconds that a synchronous request waits for a slot before it is refused; null if it is held as long as its client is connected (`auto`).',
  ),
  memory_bytes: nullableInteger('Bytes of memory that it uses or is expected to use; null if unknown.'),
  context_length: nullableInteger('Most tokens of a request and its answer together; null if unknown.'),
  price: nullable(ModelPrice, 'Prices of the model; null if its use costs nothing.'),
  capabilities,
  features: z.record(z.string(), z.array(z.string())).describe('Optional request features by task.'),
  input_schema: nullable(
    z.record(z.string(), z.unknown()),
    'JSON Schema of a request at `slug`; null for models without a slug.',
  ),
  input_schemas: z
    .record(z.string(), z.record(z.string(), z.unknown()))
    .describe('JSON Schemas of requests by task, for tasks with a slug.'),
})

/** Returns the status of a model that its users may see. */
export function modelStatusView(
  model: ListedModel,
  { models, residents }: FleetSnapshot,
  { config, fleet, jobs, registry }: Owners<'config' | 'fleet' | 'jobs' | 'registry'>,
): z.input<typeof ModelStatus> {
  const activity = models[model.modelId]
  const own = residents.filter(resident => resident.modelId === model.modelId)
  const outlook = jobs.queueForecast(model.modelId)
  const isQueued = outlook.waiting > 0 || activity?.elsewhere !== undefined
  const queue = queueOf(activity, { ...outlook, etaMs: isQueued ? outlook.etaMs : null })
  const bySlug = slugsOf(model)
  const slugs = Object.fromEntries(bySlug)
  const schemas = Object.fromEntries(
    [...bySlug.keys()].map(task => [task, inputSchema(task, model.resolutions) as Record<string, unknown>]),
  )
  const entry = registry.catalog().get(model.id)
  const features = featuresByTask(model.tasks, entry?.traits.features ?? new Set())
  return {
    model_id: model.id,
    spec_id: `${model.id}@1`,
    profile_of: model.kind === 'profile' ? (model.adapterId ?? model.modelId) : null,
    adapter_of: model.kind === 'adapter' ? model.modelId : null,
    aliases: model.kind === 'profile' ? [] : (model.aliases ?? []),
    fallbacks: (model.fallbacks ?? []).map(({ model: id, when, wait = null }) => ({
      model_id: id,
      when,
      wait_ms: wait,
    })),
    enabled: model.enabled,
    tasks: model.tasks,
    slug: firstSlugOf(model),
    slugs,
    status: model.enabled ? (activity?.status ?? 'cold') : 'disabled',
    reason: activity?.reason ?? null,
    engine: model.engine,
    region: entry?.region ?? null,
    workers: {
      ready: own.filter(({ state }) => state === 'ready').length,
      loading: own.filter(({ state }) => state === 'starting').length,
    },
    placement: own[0] ? placementView(own[0].placement) : null,
    benchmark: fleet.benchmark(registry.find(model.modelId)!),
    ...queue,
    dispatch_wait_ms: model.dispatch_wait_ms === 'auto' ? null : model.dispatch_wait_ms,
    memory_bytes: own[0]?.bytes ?? model.memory ?? null,
    context_length: model.context_length ?? null,
    price: priceObject(model, config.currency),
    capabilities: capabilitiesIn(features),
    features,
    input_schema: Object.values(schemas)[0] ?? null,
    input_schemas: schemas,
  }
}
