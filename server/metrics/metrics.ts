import { Counter, collectDefaultMetrics, Gauge, Registry } from 'prom-client'
import type { Jobs } from '../../core/jobs/jobs.ts'
import type { DeviceReadings, Fleet } from '../../core/models/fleet.ts'
import type { Peers } from '../../core/models/peers/peers.ts'
import type { Reload } from '../../core/models/reload.ts'
import type { Store } from '../../core/store/store.ts'
import type { Webhooks } from '../../core/webhooks/webhooks.ts'
import { CountedHistogram, type Distribution } from './histogram.ts'
import type { Throughput } from './throughput.ts'
import type { Timings } from './timings.ts'

/** The owners whose numbers are read at a scrape. */
export interface MetricSources {
  store: Pick<Store, 'stats' | 'jobs'>
  fleet: Pick<Fleet, 'snapshot'>
  /** Its calls in other processes are asked for what they have counted. */
  jobs: Pick<Jobs, 'queueForecast'> & { calls: Pick<Jobs['calls'], 'known'> }
  /** Responses that are being streamed. */
  streams: { readonly count: number }
  reload: Pick<Reload, 'status'>
  throughput: Pick<Throughput, 'totals'>
  timings: Pick<Timings, 'histograms'>
  webhooks: Pick<Webhooks, 'counts' | 'totals'>
  peers: Pick<Peers, 'snapshot'>
  /** What gateway processes have answered themselves, and their messages with this one; absent without such processes. */
  fronts?: (() => { requests: number; messages: number }) | undefined
}

/** A route, as its metrics name it. */
interface CountedRoute {
  method: string
  path: string
}

/** Counters of what finished work has used besides tokens, by model. */
const usageCounters = [
  ['infer_images_total', 'Images written by finished work, by model.', 'images'],
  ['infer_video_seconds_total', 'Seconds of video written by finished work, by model.', 'video_seconds'],
  ['infer_audio_seconds_total', 'Seconds of audio written or transcribed by finished work, by model.', 'audio_seconds'],
  ['infer_characters_total', 'Characters turned into audio by finished work, by model.', 'characters'],
  ['infer_gpu_seconds_total', 'GPU seconds of finished work, by model.', 'gpu_seconds'],
  ['infer_cost_total', 'Cost of finished work in currency units, by model.', 'cost'],
] as const

/** Returns how a metric is read at the scrape: anew, by this function. */
const collectAnew = <Metric extends Counter | Gauge>(collect: (metric: Metric) => void | Promise<void>) =>
  function (this: Metric) {
    this.reset()
    return collect(this)
  }

/** Opens the metrics for Prometheus. Owners are read at the scrape; only requests are counted when they end. */
export function openMetrics(sources: MetricSources) {
  const { store, fleet, jobs, streams, reload, throughput, timings, webhooks, peers, fronts } = sources
  const registry = new Registry()
  const registers = [registry]
  collectDefaultMetrics({ register: registry })
  const duration = new CountedHistogram({
    name: 'infer_http_request_duration_seconds',
    help: 'Seconds from the request to the end of its answer.',
    labelNames: ['route'],
    buckets: [0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10, 60, 300],
  })
  registry.registerMetric(duration)
  for (const histogram of timings.histograms) registry.registerMetric(histogram)

  const gauge = (name: string, help: string, labelNames: string[], collect: (set: Gauge) => void | Promise<void>) =>
    new Gauge({ name, help, labelNames, registers, collect: collectAnew(collect) })
  const total = (name: string, help: string, labelNames: string[], collect: (set: Counter) => void) =>
    new Counter({ name, help, labelNames, registers, collect: collectAnew(collect) })

  gauge('infer_jobs', 'Queued jobs in the store by state.', ['state'], async set => {
    for (const [state, count] of Object.entries(await store.jobs.counts())) set.set({ state }, count)
  })
  total('infer_ledger_rows_total', 'Rows in the ledger.', [], set => set.inc(store.stats().ledgerRows))
  total('infer_late_results_total', 'Results that arrived after their job had ended or been started again.', [], set =>
    set.inc(store.stats().lateResults),
  )
  total('infer_store_commits_total', 'Transactions committed since the start.', [], set =>
    set.inc(store.stats().commits),
  )
  gauge('infer_store_writable', '1, or 0 while the disk is full.', [], set =>
    set.set(store.stats().writable === true ? 1 : 0),
  )
  const engines = (name: string, help: string, of: 'engineStarts' | 'engineFailures') =>
    total(name, `${help}, by model.`, ['model'], set => {
      for (const [model, activity] of Object.entries(fleet.snapshot().models)) set.inc({ model }, activity[of])
    })
  engines('infer_engine_starts_total', 'Engine processes started', 'engineStarts')
  engines('infer_engine_failures_total', 'Engine starts that failed and engines that crashed', 'engineFailures')
  total('infer_tokens_total', 'Input and output tokens of models.', ['model', 'kind'], set => {
    for (const [model, { input, output }] of throughput.totals()) {
      set.inc({ model, kind: 'input' }, input)
      set.inc({ model, kind: 'output' }, output)
    }
  })
  for (const [name, help, of] of usageCounters)
    total(name, help, ['model'], set => {
      const { used } = store.stats()
      // From 0 for every model, so that the first increase is one. Models that were removed keep theirs.
      for (const model of new Set([...Object.keys(fleet.snapshot().models), ...used.keys()]))
        set.inc({ model }, used.get(model)?.[of] ?? 0)
    })
  gauge('infer_streams', 'Responses that are being streamed or wait for their reader to catch up.', [], set =>
    set.set(streams.count),
  )
  gauge('infer_queue_depth', 'Requests and jobs that wait for a slot, by model.', ['model'], set => {
    for (const model of Object.keys(fleet.snapshot().models)) set.set({ model }, jobs.queueForecast(model).waiting)
  })
  gauge('infer_leases', 'Slots in use, by engine.', ['engine', 'model'], set => {
    for (const { engineId, modelId, leases } of fleet.snapshot().residents)
      set.set({ engine: engineId, model: modelId }, leases)
  })
  gauge(
    'infer_engines',
    'Engines, by model and state: starting, ready, stopping or parked.',
    ['model', 'state'],
    set => {
      for (const { modelId, state } of fleet.snapshot().residents) set.inc({ model: modelId, state })
    },
  )
  gauge(
    'infer_engine_address_ready',
    '1, or 0 while requests to this address of a remote model fail.',
    ['model', 'address'],
    set => {
      for (const { modelId, addresses } of fleet.snapshot().residents)
        for (const { url, state } of addresses) set.set({ model: modelId, address: url }, state === 'ready' ? 1 : 0)
    },
  )
  gauge(
    'infer_configuration_in_force',
    '1, or 0 while infer.yaml has an error and the last valid configuration is used.',
    [],
    set => set.set(reload.status().fault === null ? 1 : 0),
  )
  total('infer_configuration_reloads_total', 'Changes of infer.yaml, by result.', ['result'], set => {
    set.inc({ result: 'applied' }, reload.status().applied)
    set.inc({ result: 'refused' }, reload.status().refused)
  })
  gauge(
    'infer_device_memory_bytes',
    'Memory of each device: total, in use, and reserved for engines.',
    ['device', 'kind'],
    set => {
      for (const device of fleet.snapshot().devices) {
        set.set({ device: device.id, kind: 'total' }, device.totalBytes)
        set.set({ device: device.id, kind: 'booked' }, device.bookedBytes)
        if (device.usedBytes !== null) set.set({ device: device.id, kind: 'used' }, device.usedBytes)
      }
    },
  )
  gauge('infer_saved_conversations', 'Conversations whose memory is saved.', [], set =>
    set.set(fleet.snapshot().saved.conversations),
  )
  gauge(
    'infer_saved_conversations_bytes',
    'Main memory of saved conversations: used, and the limit.',
    ['kind'],
    set => {
      const { bytes, limitBytes } = fleet.snapshot().saved
      set.set({ kind: 'used' }, bytes)
      set.set({ kind: 'limit' }, limitBytes)
    },
  )
  gauge('infer_pool_cards', 'GPUs of each pool: all, and those that engines use.', ['pool', 'kind'], set => {
    for (const { name, cards, usedCards } of fleet.snapshot().pools) {
      set.set({ pool: name, kind: 'total' }, cards)
      set.set({ pool: name, kind: 'used' }, usedCards)
    }
  })
  gauge('infer_pool_engines', 'Engines in each pool.', ['pool'], set => {
    for (const { name, engines } of fleet.snapshot().pools) set.set({ pool: name }, engines)
  })
  gauge('infer_pool_card_hours', 'GPU hours of this month in each pool, and their limit.', ['pool', 'kind'], set => {
    for (const { name, usedCardHours, monthlyCardHoursLimit } of fleet.snapshot().pools) {
      set.set({ pool: name, kind: 'used' }, usedCardHours)
      if (monthlyCardHoursLimit !== null) set.set({ pool: name, kind: 'limit' }, monthlyCardHoursLimit)
    }
  })
  gauge('infer_pool_cost', 'Cost of these, and its limit.', ['pool', 'kind'], set => {
    for (const { name, usedCost, monthlyCostLimit } of fleet.snapshot().pools) {
      set.set({ pool: name, kind: 'used' }, usedCost)
      if (monthlyCostLimit !== null) set.set({ pool: name, kind: 'limit' }, monthlyCostLimit)
    }
  })
  gauge('infer_pool_known', '1, or 0 while it is not known what the pool has.', ['pool'], set => {
    for (const { name, unknown } of fleet.snapshot().pools) set.set({ pool: name }, unknown === null ? 1 : 0)
  })
  gauge('infer_peer_models', 'Names of models that each peer lists, or did when it answered last.', ['peer'], set => {
    for (const { name, models } of peers.snapshot()) set.set({ peer: name }, models)
  })
  gauge('infer_peer_usable', '1, or 0 while the models of the peer cannot be used.', ['peer'], set => {
    for (const { name, fault, listedAt } of peers.snapshot())
      if (fault !== null || listedAt !== null) set.set({ peer: name }, fault === null ? 1 : 0)
  })
  gauge('infer_device_usable', '1, or 0 while a card has a fault and gets no engine.', ['device'], set => {
    for (const { id, fault } of fleet.snapshot().devices) set.set({ device: id }, fault === null ? 1 : 0)
  })
  gauge(
    'infer_device_paused',
    '1, or 0 while infer uses the device: it is given to other programs.',
    ['device'],
    set => {
      for (const { id, paused } of fleet.snapshot().devices) set.set({ device: id }, paused === null ? 0 : 1)
    },
  )
  const reading = (name: string, help: string, of: (device: DeviceReadings) => number | null) =>
    gauge(name, `${help} Absent where the driver does not report it.`, ['device'], set => {
      for (const device of fleet.snapshot().devices) {
        const value = of(device)
        if (value !== null) set.set({ device: device.id }, value)
      }
    })
  reading(
    'infer_device_utilization_ratio',
    'Fraction of the last sample period in which a kernel ran on the card, 0 to 1.',
    ({ utilization }) => utilization,
  )
  reading(
    'infer_device_temperature_celsius',
    'Temperature of each card.',
    ({ temperatureCelsius }) => temperatureCelsius,
  )
  reading('infer_device_power_watts', 'Power draw of each card.', ({ powerWatts }) => powerWatts)

  total('infer_webhook_attempts_total', 'Attempts to deliver a webhook, by outcome.', ['outcome'], set => {
    for (const [outcome, count] of Object.entries(webhooks.totals())) set.inc({ outcome }, count)
  })
  const kept = 'Kept webhook deliveries, pending and dead, 10,000 at most.'
  gauge('infer_webhook_deliveries', kept, ['state'], async set => {
    for (const [state, count] of Object.entries(await webhooks.counts())) set.set({ state }, count)
  })

  type Child = { counts: Map<number, { count: number }>; time: Distribution }
  total('infer_front_requests_total', 'Requests that gateway processes answered without the first process.', [], set =>
    set.inc(fronts?.().requests ?? 0),
  )
  total('infer_front_messages_total', 'Messages between gateway processes and the first process.', [], set =>
    set.inc(fronts?.().messages ?? 0),
  )
  const children = new Map<CountedRoute, Child>()
  const nameOf = (route: CountedRoute) => `${route.method} ${route.path}`
  total('infer_http_requests_total', 'Requests answered, by route and status.', ['route', 'status'], set => {
    for (const [route, { counts }] of children)
      for (const [status, { count }] of counts) set.inc({ route: nameOf(route), status: String(status) }, count)
  })

  return {
    /** Counts an answered request. */
    answered(route: CountedRoute, status: number, elapsedMs: number): void {
      let child = children.get(route)
      if (!child) children.set(route, (child = { counts: new Map(), time: duration.under({ route: nameOf(route) }) }))
      let of = child.counts.get(status)
      if (!of) child.counts.set(status, (of = { count: 0 }))
      of.count += 1
      child.time.observe(elapsedMs / 1000)
    },
    contentType: registry.contentType,
    async text(): Promise<string> {
      await jobs.calls.known()
      return registry.metrics()
    },
  }
}
export type Metrics = ReturnType<typeof openMetrics>
