import { z } from 'zod'
import { modelAllowed } from '../../../core/accounts/model-allowed.ts'
import { version } from '../../../core/assets.ts'
import { ModelBenchmark } from '../../../core/models/benchmark.ts'
import type { FleetSnapshot, ResidentSnapshot } from '../../../core/models/fleet.ts'
import type { Model } from '../../../core/models/model.ts'
import {
  array,
  integer,
  namedObject,
  nullable,
  nullableInteger,
  nullableString,
  number,
  object,
  oneOf,
  string,
} from '../../../core/schemas/fields.ts'
import { Task } from '../../../core/schemas/task.ts'
import { jobClasses } from '../../../core/store/store.ts'
import { requireMachineOwner } from '../../http/access/reach.ts'
import type { Owners } from '../../http/request/owners.ts'
import { routeOf } from '../../http/request/route.ts'
import type { Timing } from '../../metrics/timings.ts'
import { DeviceStatus, deviceStatus, LeftDevice } from '../../views/device-status.ts'
import { EngineStatus, engineOf } from '../../views/engine-status.ts'
import { WaitingFor, waitingObject } from '../../views/job-record.ts'
import { LimitUse, limitUse, SpendUse, spendUse } from '../../views/limit-use.ts'
import { modelRegion, modelState } from '../../views/model-status.ts'
import { PeerStatus, peerStatus } from '../../views/peer-status.ts'
import { PoolStatus, poolStatus } from '../../views/pool-status.ts'
import { seconds } from '../../views/view-of.ts'
import { allowedModels } from '../../work/allowed-models.ts'

const route = routeOf({ tag: 'System' })

const Mean = z.number().nullable()
const average = 'Milliseconds, moving average; null before the first.'
const ModelLoad = namedObject('ModelLoad', 'How much a model is used.', {
  model_id: string('Id of the model.'),
  engine: string('Engine preset, such as `gguf` or `vllm`.'),
  tasks: array('Tasks that the model does.', Task),
  region: modelRegion,
  status: modelState,
  reason: nullableString('Why it is unavailable or not loaded, as a sentence; else null.'),
  eta_seconds: nullableInteger('Expected seconds until it is loaded; null if unknown or loaded.'),
  slots: integer('How many requests its loaded engines can serve at a time.'),
  busy: integer('How many requests they serve now.'),
  waiting: integer('Requests and jobs that wait for a slot.'),
  interactive: integer('How many of these are synchronous requests.'),
  waiting_for: nullable(WaitingFor, 'Why the first of them has not begun; null if none waits.'),
  output_tokens_per_second: number('Generated tokens per second, over the last 5 s.'),
  input_tokens_per_second: number(
    'Prompt tokens per second, over the last 5 s. A prompt is counted when its answer ends.',
  ),
  benchmark: nullable(ModelBenchmark, 'Its newest benchmark with its current settings; null before any.'),
  saved_conversations: nullable(
    z.object({
      conversations: integer('How many are saved.'),
      bytes: integer('Bytes of main memory that they use.'),
    }),
    'Conversations whose memory is saved: their next request computes only what is new. Null if its engine saves none.',
  ),
  queue_wait_ms: Mean.describe(`How long requests waited for a slot. ${average}`),
  waits: nullable(
    z.object({
      queue_ms: integer('Milliseconds that they waited.'),
      reference_queue_ms: integer(
        'Milliseconds that they would have waited in a queue that ignores which models are loaded: by class, share of the organization and arrival. For requests that were served before it had begun them, what they waited.',
      ),
    }),
    'Requests that waited for a slot, as moving averages; null before the first.',
  ),
  time_to_first_token_ms: Mean.describe(`Time from the request to the first token. ${average}`),
  inter_token_latency_ms: Mean.describe(`Time between two tokens. ${average}`),
  load_ms: Mean.describe(`How long loading took. ${average}`),
  engine_starts: integer('Engine starts since the server started.'),
  engine_failures: integer('Engine starts that failed and engines that crashed since the server started.'),
})

const WaitingRequest = namedObject('WaitingRequest', 'A synchronous request that waits for a slot.', {
  id: string('Id of its job. Its organization can cancel it: `POST /api/jobs/{id}/cancel`.'),
  model_id: string('Id of the model.'),
  organization_id: string('Id of the organization that sent it.'),
  class: oneOf('Priority class.', jobClasses),
  waited_ms: integer('Milliseconds that it has waited.'),
  queue_position: nullableInteger('How many requests and jobs are before it; null if unknown.'),
  waiting_for: nullable(WaitingFor, 'Why it has not begun; null if unknown.'),
})

/** Maximum number of waiting requests in the list. */
const maxListed = 100

const SystemStatus = namedObject('SystemStatus', 'What runs on the machine.', {
  object: z.literal('system.status'),
  version: string('Version of infer.'),
  time: integer('Unix seconds of the clock of the server.'),
  started_at: integer('Unix seconds at which the server started.'),
  requests: integer('HTTP requests that are being answered, this one included.'),
  jobs: object('Jobs of all organizations that have not ended.', {
    pending: integer('Jobs that wait.'),
    processing: integer('Jobs that run.'),
  }),
  devices: array('GPUs and the CPU.', DeviceStatus),
  left_devices: array('GPUs that are left to others.', LeftDevice),
  pools: array('Pools of machines besides this one.', PoolStatus),
  peers: array('Other infers whose models are offered here.', PeerStatus),
  engines: array('Engines that run, load or stop.', EngineStatus),
  models: array('Models that the token may use.', ModelLoad),
  saved_conversations: object('Conversations whose memory is saved, of all models.', {
    conversations: integer('How many are saved.'),
    bytes: integer('Bytes of main memory that they use.'),
    limit_bytes: integer('Bytes that they may use: `caches.memory` in `infer.yaml`.'),
    fault: nullableString('Why none is saved although the configuration allows it, as a sentence; else null.'),
  }),
  waiting: array(
    'Synchronous requests that wait for a slot, oldest first, at most 100. For jobs see `GET /api/jobs`.',
    WaitingRequest,
  ),
  limits: array('Every limit that applies to the caller, and what is left of it.', LimitUse),
  spend: SpendUse,
})

const sum = (all: readonly ResidentSnapshot[], of: (one: ResidentSnapshot) => number) =>
  all.reduce((total, one) => total + of(one), 0)

function loadOf(
  model: Model,
  { models, residents, saved }: FleetSnapshot,
  { fleet, jobs, registry, throughput, timings }: Owners<'fleet' | 'jobs' | 'registry' | 'throughput' | 'timings'>,
): z.input<typeof ModelLoad> {
  const activity = models[model.id]
  const ready = residents.filter(({ modelId, state }) => modelId === model.id && state === 'ready')
  const rate = throughput.rate(model.id)
  const { waiting, interactive } = jobs.queueForecast(model.id)
  const waits = timings.meanWait(model.id)
  const mean = (kind: Timing) => {
    const ms = timings.mean(kind, model.id)
    return ms === null ? null : Math.round(ms * 100) / 100
  }
  return {
    model_id: model.id,
    engine: model.engine,
    tasks: model.tasks,
    region: registry.catalog().get(model.id)?.region ?? null,
    status: model.enabled ? (activity?.status ?? 'cold') : 'disabled',
    reason: activity?.reason ?? null,
    eta_seconds: activity?.etaMs == null ? null : Math.ceil(activity.etaMs / 1000),
    slots: sum(ready, ({ slots }) => slots),
    busy: sum(ready, ({ leases }) => leases),
    waiting,
    interactive,
    waiting_for: waiting > 0 ? waitingObject(jobs.firstWaitsFor(model.id)) : null,
    output_tokens_per_second: Math.round(rate.output * 10) / 10,
    input_tokens_per_second: Math.round(rate.input * 10) / 10,
    benchmark: fleet.benchmark(model),
    saved_conversations: saved.models[model.id] ?? null,
    queue_wait_ms: mean('queue'),
    waits: waits && {
      queue_ms: Math.round(waits.queueMs),
      reference_queue_ms: Math.round(waits.referenceQueueMs),
    },
    time_to_first_token_ms: mean('firstToken'),
    inter_token_latency_ms: mean('token'),
    load_ms: mean('load'),
    engine_starts: activity?.engineStarts ?? 0,
    engine_failures: activity?.engineFailures ?? 0,
  }
}

const savedConversations = ({ saved: { conversations, bytes, limitBytes, fault } }: FleetSnapshot) => ({
  conversations,
  bytes,
  limit_bytes: limitBytes,
  fault,
})

/** Returns the synchronous requests in the queues of these models, oldest first, with the reason why each waits. */
function waitingRequests({ jobs }: Owners<'jobs'>, models: ReadonlySet<string>): z.input<typeof WaitingRequest>[] {
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
      waiting_for: waitingFor && waitingObject(waitingFor),
    }
  })
}

/** The route behind `infer status`. */
export const statusRoutes = (
  owners: Owners<
    | 'accounts'
    | 'exchanges'
    | 'fleet'
    | 'jobs'
    | 'limiter'
    | 'peers'
    | 'registry'
    | 'spend'
    | 'throughput'
    | 'timings'
    | 'tokenLimiter'
  >,
) => [
  route('GET /api/system/status', 'admin:read', {
    summary: 'Get system status',
    description:
      'Returns devices and their memory, engines, slots, queues, tokens per second, and the limits of the caller. Only for tokens of the organization that owns the machine.',
    errorCodes: ['organization_mismatch'],
    response: SystemStatus,
    handle: async (_, exchange) => {
      requireMachineOwner(exchange, 'What runs on the machine is')
      const { accounts, fleet, registry, jobs, exchanges } = owners
      const [counts, processes, use] = await Promise.all([
        jobs.counts(),
        fleet.deviceProcesses(),
        accounts.use(exchange.caller.organizationId),
        jobs.calls.known(),
      ])
      const now = fleet.snapshot()
      const allowed = allowedModels(exchange, { registry })
      return {
        object: 'system.status' as const,
        version,
        time: seconds(Date.now()),
        started_at: seconds(performance.timeOrigin),
        requests: exchanges.size + jobs.calls.openElsewhere(),
        jobs: { pending: counts.pending, processing: counts.processing },
        devices: now.devices.map(device => deviceStatus(device, processes.get(device.id))),
        left_devices: now.leftDevices.map(one => ({ ...one })),
        pools: now.pools.map(poolStatus),
        peers: owners.peers.snapshot().map(peerStatus),
        // Includes engines of models that were removed from the configuration, until their requests have ended.
        engines: now.residents
          .filter(({ modelId }) => modelAllowed(exchange.caller.token.models, modelId))
          .map(engineOf),
        models: allowed.map(model => loadOf(model, now, owners)),
        saved_conversations: savedConversations(now),
        waiting: waitingRequests(owners, new Set(allowed.map(({ id }) => id))),
        limits: limitUse(exchange.caller, use, owners),
        spend: spendUse(exchange.caller, owners.spend),
      }
    },
  }),
]
