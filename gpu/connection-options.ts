import type { Log } from '../core/log.ts'
import type { Model } from '../core/models/model.ts'
import type { Caches } from './caches/caches.ts'
import type { Engine } from './engine.ts'
import type { Converter } from './presets/preset.ts'
import { missingRoute, presetOf } from './presets/presets.ts'
import type { ConnectionOptions } from './requests/connections.ts'
import { engineRoute, openEngineAdapters } from './requests/engine-adapters.ts'
import { fetchDescription } from './requests/health.ts'
import type { Resident } from './residency/model-state.ts'
import type { Residency } from './residency/residency.ts'

export interface ConnectionFacts {
  /** A model as it is configured now; undefined if it is not offered. */
  configured: (modelId: string) => Model | undefined
  /** How long an engine may continue a cancelled request, in milliseconds. */
  cancelGraceMs: number
  /** Keeps conversations; absent: none are saved. */
  caches?: Caches | undefined
  log: Log
  events: () => Pick<Residency, 'stuck' | 'unresponsive' | 'paused' | 'accepted'>
}

/** Returns how the engine of a model explains the error answers of its paths. */
export const failureOfEngine =
  (model: Model): ConnectionOptions['failureOf'] =>
  (status, body, path) =>
    missingRoute(model, path, status, body) ?? presetOf(model).failureOf(status, body)

/** How requests reach a ready engine. `conversations`: the folder of its model in which they are saved. */
export function connectionOptionsOf(
  resident: Resident,
  { engine, conversations }: { engine: Engine; conversations: string | undefined },
  convert: Converter | undefined,
  { cancelGraceMs, caches, configured, log, events }: ConnectionFacts,
): ConnectionOptions {
  const { engineId, serves } = resident
  const { model } = serves
  const preset = presetOf(model)
  const { upstreamId, adapterPrefix = '' } = preset.traits(model)
  const fields = { model: model.id, engine: engineId }
  const endpoint = engine.endpoint()!
  const headers = ['content-type', 'application/json', ...engine.options.headers]
  const nameAdapter =
    preset.adapters &&
    openEngineAdapters({
      support: preset.adapters,
      configured: () => configured(model.id),
      isReplaced: () => serves.retired,
      plan: resident.placement.plan?.adapters,
      upstreamId,
      prefix: adapterPrefix,
      post: engineRoute(endpoint, headers),
    })
  return {
    engineId,
    modelId: model.id,
    endpoint,
    headers,
    noProgressMs: model.no_progress,
    keepAliveMs: preset.keepAliveMs,
    isOwnProcess: engine.options.addresses === undefined,
    sharesFolders: resident.placement.pool === undefined,
    takesTrace: preset.takesTrace,
    failureOf: failureOfEngine(model),
    convert,
    nameAdapter,
    ownerOf:
      conversations === undefined || preset.savesSlots
        ? undefined
        : organizationId => caches?.ownerIn(conversations, organizationId),
    healthPath: preset.runningPath?.(model) ?? (preset.reportsRunning?.(model) ? preset.healthPath(model) : null),
    pollMs: preset.runningPollMs ?? 20,
    cancelGraceMs,
    unreached: engine.reachCheck(),
    others: () => resident.granted ?? 0,
    hasFreeSlot: () => resident.leases < resident.slots,
    unresponsive() {
      log.warn('An engine ignores cancelled requests and is killed', fields)
      const reason = `Engine was killed because it continued a cancelled request for ${cancelGraceMs / 1000} s.`
      events().unresponsive(engineId, reason)
    },
    pauseRequested(ms) {
      log.warn('An engine asked for a pause', { ...fields, for_ms: ms })
      events().paused(engineId, ms)
    },
    accepted() {
      // Not while an answer is read, because requests that waited are sent.
      if (resident.pause?.probing) queueMicrotask(() => events().accepted(engineId))
    },
    stuck() {
      log.warn('An engine makes no progress and is killed', fields)
      events().stuck(engineId, `Engine made no progress for ${model.no_progress / 1000} s and was stopped.`)
    },
    listenerThrew: thrown => log.error('A listener of an answer threw', { model: model.id }, thrown),
  }
}

/** What changes requests that the engine cannot process as they are, by its description of itself; undefined for most. */
export async function converterFor({ serves: { model } }: Resident, engine: Engine): Promise<Converter | undefined> {
  const preset = presetOf(model)
  const path = preset.descriptionPath?.(model) ?? null
  const endpoint = engine.endpoint()
  if (path === null || endpoint === undefined) return undefined
  return preset.converter?.(await fetchDescription(endpoint, path, engine.options.headers))
}
