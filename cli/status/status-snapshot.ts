import { z } from 'zod'

const Device = z.looseObject({
  id: z.string(),
  name: z.string(),
  kind: z.string(),
  total_bytes: z.number(),
  used_bytes: z.number().nullable(),
  booked_bytes: z.number(),
  // Older servers do not send these fields.
  utilization: z.number().nullish(),
  temperature_celsius: z.number().nullish(),
  power_watts: z.number().nullish(),
  power_limit_watts: z.number().nullish(),
})
const Engine = z.looseObject({
  id: z.string(),
  model_id: z.string(),
  state: z.string(),
  pid: z.number().nullable(),
  devices: z.array(z.string()),
  memory_bytes: z.number(),
  slots: z.number(),
  busy: z.number(),
  started_at: z.number(),
  last_used_at: z.number(),
})
const Model = z.looseObject({
  model_id: z.string(),
  status: z.string(),
  // Older servers do not send it.
  region: z.string().nullish(),
  reason: z.string().nullable(),
  eta_seconds: z.number().nullable(),
  slots: z.number(),
  busy: z.number(),
  waiting: z.number(),
  output_tokens_per_second: z.number(),
  input_tokens_per_second: z.number(),
  queue_wait_ms: z.number().nullish(),
  time_to_first_token_ms: z.number().nullish(),
  inter_token_latency_ms: z.number().nullish(),
  load_ms: z.number().nullish(),
})

const Waiting = z.looseObject({
  id: z.string(),
  model_id: z.string(),
  waited_ms: z.number(),
  queue_position: z.number().nullable(),
  waiting_for: z.looseObject({ detail: z.string(), eta_seconds: z.number().nullable() }).nullable(),
})

const Limit = z.looseObject({
  name: z.string(),
  limit_of: z.string(),
  limit: z.number(),
  remaining: z.number(),
  reset_seconds: z.number().nullable(),
})

const Spend = z.looseObject({
  monthly_limit: z.number().nullable(),
  spent: z.number(),
  held: z.number(),
  remaining: z.number().nullable(),
  period_end: z.number(),
})

/** The fields of `GET /api/system/status` that are drawn. */
export const StatusSnapshot = z.looseObject({
  version: z.string(),
  time: z.number(),
  started_at: z.number(),
  requests: z.number(),
  jobs: z.looseObject({ pending: z.number(), processing: z.number() }),
  devices: z.array(Device),
  engines: z.array(Engine),
  models: z.array(Model),
  /** Older servers do not send these fields. */
  waiting: z.array(Waiting).default([]),
  limits: z.array(Limit).default([]),
  spend: z.looseObject({ currency: z.string(), organization: Spend, token: Spend }).optional(),
})
export type StatusSnapshot = z.output<typeof StatusSnapshot>
export type StatusDevice = z.output<typeof Device>
export type StatusEngine = z.output<typeof Engine>
export type StatusModel = z.output<typeof Model>
export type StatusSpend = NonNullable<StatusSnapshot['spend']>
export type StatusLimit = z.output<typeof Limit>
export type StatusWaiting = z.output<typeof Waiting>
