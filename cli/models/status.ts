import { z } from 'zod'
import type { Client } from '../client/client.ts'

/** The fields of a model's status that commands use. Other fields are kept. */
export const ModelStatus = z.looseObject({
  model_id: z.string(),
  status: z.string(),
  tasks: z.array(z.string()),
  enabled: z.boolean().optional(),
  engine: z.string().optional(),
  region: z.string().nullish(),
  slug: z.string().nullish(),
  slugs: z.record(z.string(), z.string()).optional(),
  reason: z.string().nullish(),
  queue_depth: z.number().optional(),
  eta_seconds: z.number().nullish(),
  price: z
    .looseObject({
      currency: z.string(),
      image_prices: z
        .array(z.object({ price: z.number(), size: z.string().nullish(), quality: z.string().nullish() }))
        .optional(),
    })
    .nullish(),
  workers: z.object({ ready: z.number(), loading: z.number() }).optional(),
})
export type ModelStatus = z.output<typeof ModelStatus>

export const ModelStatusList = z.looseObject({
  models: z.array(ModelStatus),
  configuration: z
    .looseObject({ fault: z.string().nullable(), restart_for: z.array(z.string()).default([]) })
    .optional(),
})

const Engine = z.looseObject({
  id: z.string(),
  state: z.string(),
  pid: z.number().nullable(),
  devices: z.array(z.string()),
  memory_bytes: z.number(),
  slots: z.number(),
  busy: z.number(),
  started_at: z.number(),
  command: z.array(z.string()),
})

/** A model with its settings and engines. */
export const ModelDetail = z.looseObject({
  id: z.string(),
  settings: z.record(z.string(), z.unknown()),
  status: ModelStatus,
  engines: z.array(Engine),
})
export type ModelDetail = z.output<typeof ModelDetail>

/** Returns the path of a model in the API; slashes in its id stay in the path. */
export const modelPath = (id: string): string => `/api/models/${id.split('/').map(encodeURIComponent).join('/')}`

export const detailOf = (client: Client, id: string, signal?: AbortSignal): Promise<ModelDetail> =>
  client.ask({ method: 'GET', path: modelPath(id), answer: ModelDetail, ...(signal ? { signal } : {}) })
