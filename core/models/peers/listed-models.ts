import { z } from 'zod'
import { jsonOf } from '../../json.ts'
import { type RegionLabel, regionLabels } from '../../schemas/region.ts'
import { impliedBy, ModelTask, type Task } from '../../schemas/task.ts'
import { Feature } from '../model.ts'
import { modelNameSchema } from '../model-id.ts'
import { type Price, priceSchema } from '../price.ts'

/** A model of another infer, as it lists it to the token of this one. */
export interface PeerModel {
  /** Its name there. */
  name: string
  description?: string
  tasks: Task[]
  features?: Feature[]
  contextLength?: number
  region?: RegionLabel
  price?: Price
}

/** What a request for a model of another infer finds there now. */
export interface PeerLoad {
  status: 'warm' | 'loading' | 'cold' | 'unavailable'
  /** Why it is unavailable, as a sentence. */
  reason: string | null
  /** Requests and jobs that wait for it there; null where that infer does not tell. */
  waiting: number | null
  /** Expected milliseconds until one more request would begin there; null if unknown. */
  etaMs: number | null
}

export interface PeerListing {
  models: PeerModel[]
  /** By the name there. */
  loads: ReadonlyMap<string, PeerLoad>
}

/** The answer of `GET /std/v1/models`. Fields that an older infer lacks are optional; what a newer one adds is ignored. */
const Listing = z.object({
  data: z.array(
    z.object({
      id: modelNameSchema(),
      description: z.string().nullish(),
      tasks: z.array(z.string()),
      capabilities: z.array(z.string()).nullish(),
      status: z.string(),
      reason: z.string().nullish(),
      queue_depth: z.number().nullish(),
      eta_seconds: z.number().nullish(),
      context_length: z.int().min(1).nullish(),
      region: z.string().nullish(),
      price: z.looseObject({ currency: z.string() }).nullish(),
    }),
  ),
})

/** An answer that cannot be used, with the reason as the end of a sentence about the peer. */
export class UnusableListing extends Error {}

/**
 * Reads the list of another infer. Models without a task that this one knows are left out. Throws UnusableListing if it is none,
 * or if a model costs something in another currency: amounts are never converted.
 */
export function readListing(text: string, currency: string): PeerListing {
  const parsed = Listing.safeParse(jsonOf(text))
  if (!parsed.success) throw new UnusableListing('does not answer as an infer does: check the address in its url')
  const models: PeerModel[] = []
  const loads = new Map<string, PeerLoad>()
  for (const one of parsed.data.data) {
    const tasks = namedTasks(one.tasks)
    if (tasks.length === 0) continue
    if (one.price && one.price.currency !== currency)
      throw new UnusableListing(
        `has prices in ${one.price.currency}, and this server in ${currency}: set the same currency on both, or add its models one by one with engine: infer and a price`,
      )
    const region = regionLabels.find(label => label === one.region)
    // Without keys for what is absent, so that it is equal to what a file has kept of it.
    models.push({
      name: one.id,
      tasks,
      ...(one.description && { description: one.description }),
      ...(one.capabilities && { features: one.capabilities.filter(isFeature) }),
      ...(one.context_length && { contextLength: one.context_length }),
      ...(region && { region }),
      ...(one.price && { price: priceOf(one.price) }),
    })
    loads.set(one.id, {
      status: isStatus(one.status) ? one.status : 'cold',
      reason: one.reason ?? null,
      waiting: one.queue_depth ?? null,
      etaMs: one.eta_seconds == null ? null : one.eta_seconds * 1000,
    })
  }
  return { models, loads }
}

const statuses = ['warm', 'loading', 'cold', 'unavailable'] as const
const isStatus = (text: string): text is PeerLoad['status'] => (statuses as readonly string[]).includes(text)
const isFeature = (text: string): text is Feature => Feature.safeParse(text).success

/** The tasks that a configuration names, without those that others of them imply, which may not be named. */
function namedTasks(texts: readonly string[]): Task[] {
  const known = texts.flatMap(text => {
    const { data } = ModelTask.safeParse(text)
    return data === undefined ? [] : [data]
  })
  return known.filter(task => !impliedBy[task]?.some(other => known.includes(other)))
}

/** Made once: making it takes milliseconds. */
const ListedPrice = priceSchema().strip()

/** Prices as the API shows them are those of infer.yaml, with null for what is absent and 0 for what costs nothing. */
function priceOf({ image_prices: images, ...amounts }: Record<string, unknown>): Price {
  const isPriced = Array.isArray(images) && images.length > 0
  const imagePrices = isPriced && { image_prices: images.map(one => withoutNulls(one as Record<string, unknown>)) }
  const { data } = ListedPrice.safeParse({ ...withoutNulls(amounts), ...imagePrices })
  if (!data) throw new UnusableListing('has a price that this server cannot read: update the older one of both')
  return data
}

const withoutNulls = (value: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(value).filter(([, each]) => each !== null))
