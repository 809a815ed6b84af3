import { z } from 'zod'
import { modelAllowed } from '../../core/accounts/accounts.ts'
import { version } from '../../core/assets.ts'
import { waitingReasons } from '../../core/jobs/job-progress.ts'
import type { FleetSnapshot, ResidentSnapshot } from '../../core/models/fleet.ts'
import type { Model } from '../../core/models/model.ts'
import { Task } from '../../core/schemas/task.ts'
import { jobClasses } from '../../core/store/store.ts'
import { admitOwner } from '../machine-owner.ts'
import type { Owners } from '../owners.ts'
import { route } from '../route.ts'
import type { Timing } from '../timings.ts'
import { DeviceStatus, deviceStatus } from './device-status.ts'

export const EngineStatus = z
  .object({
    id: z.string(),
    model_id: z.string(),
    state: z.enum(['starting', 'ready', 'stopping']),
    pid: z.int().nullable(),
    devices: z.array(z.string()),
    memory_bytes: z.int(),
    slots: z.int(),
    busy: z.int(),
    started_at: z.int(),
    last_used_at: z.int(),
  })
  .meta({ id: 'EngineStatus' })

const Mean = z.number().nullable().describe('Moving average; null before the first.')
const ModelLoad = z
  .object({
    model_id: z.string(),
    engine: z.string(),
    tasks: z.array(Task),
    status: z.enum(['warm', 'loading', 'cold', 'unavailable', 'disabled']),
    reason: z.string().nullable(),
    eta_seconds: z.int().nullable(),
    slots: z.int(),
    busy: z.int(),
    waiting: z.int().describe('Requests and jobs that wait for a slot.'),
    interactive: z.int().describe('Of these, requests with a synchronous caller.'),
    output_tokens_per_second: z.number().describe('Of the last five seconds.'),
    input_tokens_per_second: z.number().describe('Of the last five seconds; a prompt counts when its answer ends.'),
    queue_wait_ms: Mean,
    time_to_first_token_ms: Mean,
    inter_token_latency_ms: Mean,
    load_ms: Mean,
    engine_starts: z.int(),
    engine_failures: z.int(),
  })
  .meta({ id: 'ModelLoad' })

const WaitingRequest = z
  .object({
    id: z.string().describe('The id of its job, which its organization can cancel: `POST /api/jobs/{id}/cancel`.'),
    model_id: z.string(),
    organization_id: z.string(),
    class: z.enum(jobClasses),
    waited_ms: z.int(),
    queue_position: z.int().nullable().describe('How many requests and jobs are before it.'),
    waiting_for: z
      .object({ reason: z.enum(waitingReasons), detail: z.string(), eta_seconds: z.int().nullable() })
      .nullable()
      .describe('Why it has not begun, and the expected seconds until it does.'),
  })
  .meta({ id: 'WaitingRequest' })

/** How many of them are listed. */
const maxListed = 100

const SystemStatus = z
  .object({
    object: z.literal('system.status'),
    version: z.string(),
    time: z.int(),
    started_at: z.int(),
    requests: z.int().describe('Being answered now, this one included.'),
    jobs: z.object({ pending: z.int(), processing: z.int() }),
    devices: z.array(DeviceStatus),
    engines: z.array(EngineStatus),
    models: z.array(ModelLoad),
    waiting: z
      .array(WaitingRequest)
      .describe('Synchronous requests that wait for a slot, the oldest first, at most 100. Jobs: `GET /api/jobs`.'),
  })
  .meta({ id: 'SystemStatus' })

const seconds = (ms: number): number => Math.floor(ms / 1000)
const sum = (all: readonly ResidentSnapshot[], of: (one: ResidentSnapshot) => number): number =>
  all.reduce((total, one) => total + of(one), 0)

function loadOf(
  model: Model,
  { models, residents }: FleetSnapshot,
  { jobs, throughput, timings }: Pick<Owners, 'jobs' | 'throughput' | 'timings'>,
): z.input<typeof ModelLoad> {
  const activity = models[model.id]
  const ready = residents.filter(({ modelId, state }) => modelId === model.id && state === 'ready')
  const rate = throughput.rate(model.id)
  const { waiting, interactive } = jobs.outlook(model.id)
  const mean = (kind: Timing) => {
    const ms = timings.mean(kind, model.id)
    return ms === null ? null : Math.round(ms * 100) / 100
  }
  return {
    model_id: model.id,
    engine: model.engine,
    tasks: model.tasks,
    status: model.enabled ? (activity?.status ?? 'cold') : 'disabled',
    reason: activity?.reason ?? null,
    eta_seconds: activity?.etaMs == null ? null : Math.ceil(activity.etaMs / 1000),
    slots: sum(ready, ({ slots }) => slots),
    busy: sum(ready, ({ leases }) => leases),
    waiting,
    interactive,
    output_tokens_per_second: Math.round(rate.output * 10) / 10,
    input_tokens_per_second: Math.round(rate.input * 10) / 10,
    queue_wait_ms: mean('queue'),
    time_to_first_token_ms: mean('firstToken'),
    inter_token_latency_ms: mean('token'),
    load_ms: mean('load'),
    engine_starts: activity?.engineStarts ?? 0,
    engine_failures: activity?.engineFailures ?? 0,
  }
}

/** One engine as an operator may know it. */
export const engineOf = (resident: ResidentSnapshot): z.input<typeof EngineStatus> => ({
  id: resident.engineId,
  model_id: resident.modelId,
  state: resident.state,
  pid: resident.pid,
  devices: resident.devices,
  memory_bytes: Math.round(resident.bytes),
  slots: resident.slots,
  busy: resident.leases,
  started_at: seconds(resident.startedAt),
  last_used_at: seconds(resident.lastUsedAt),
})

/** The calls in the queues of these models, the oldest first, each with the reason why it waits. */
function waitingRequests(
  { jobs }: Pick<Owners, 'jobs'>,
  models: ReadonlySet<string>,
): z.input<typeof WaitingRequest>[] {
  const calls = Array.from(jobs.calls.waiting()).filter(({ job }) => models.has(job.modelId))
  calls.sort((a, b) => b.waitedMs - a.waitedMs)
  return calls.slice(0, maxListed).map(({ job: one, waitedMs }) => {
    const { queuePosition, waitingFor } = jobs.progressOf(one)
    return {
      id: one.id,
      model_id: one.modelId,
      organization_id: one.organizationId,
      class: one.class,
      waited_ms: Math.round(waitedMs),
      queue_position: queuePosition,
      waiting_for: waitingFor && {
        reason: waitingFor.reason,
        detail: waitingFor.detail,
        eta_seconds: waitingFor.etaMs === null ? null : Math.ceil(waitingFor.etaMs / 1000),
      },
    }
  })
}

/** The route behind `infer status`. */
export const statusRoutes = (
  owners: Pick<Owners, 'calls' | 'fleet' | 'jobs' | 'registry' | 'throughput' | 'timings'>,
) => [
  route({
    method: 'GET',
    path: '/api/system/status',
    scope: 'admin:read',
    tag: 'System',
    summary: 'What runs where: devices and their memory, engines, slots, queues, tokens per second',
    response: SystemStatus,
    handle: async (_, call) => {
      admitOwner(call, 'What runs on the machine is')
      const { fleet, registry, jobs, calls } = owners
      const [counts, processes] = await Promise.all([jobs.counts(), fleet.deviceProcesses()])
      const now = fleet.snapshot()
      const allowed = registry.all().filter(model => modelAllowed(call.caller.token.models, model.id))
      return {
        object: 'system.status' as const,
        version,
        time: seconds(Date.now()),
        started_at: seconds(performance.timeOrigin),
        requests: calls.size,
        jobs: { pending: counts.pending, processing: counts.processing },
        devices: now.devices.map(device => deviceStatus(device, processes.get(device.id))),
        // Those of models that were taken out of the configuration too, until their requests have ended.
        engines: now.residents.filter(({ modelId }) => modelAllowed(call.caller.token.models, modelId)).map(engineOf),
        models: allowed.map(model => loadOf(model, now, owners)),
        waiting: waitingRequests(owners, new Set(allowed.map(({ id }) => id))),
      }
    },
  }),
]
