import { setTimeout as delay } from 'node:timers/promises'
import { Failure } from '../../core/failure.ts'
import { enabledAdapters } from '../../core/models/adapter.ts'
import type { EngineCall } from '../../core/models/engine-call.ts'
import type { Model } from '../../core/models/model.ts'
import { engineErrorIn } from '../../core/tasks/protocols/engine-error.ts'
import { oneLine, withoutLocations } from '../../core/tasks/protocols/engine-text.ts'
import { type AdapterPlan, type AdaptersPlan, adapterRank, rankFault } from '../estimate/adapters.ts'
import type { Endpoint } from '../launcher/launcher.ts'
import type { AdapterSupport } from '../presets/preset.ts'
import { headOf, withMembers } from './body-members.ts'

/** A request with what its engine needs for the adapter that it names. */
export type NameAdapter = (call: EngineCall) => EngineCall | Promise<EngineCall>

/** The first member of every body that infer writes for an engine. */
const firstModel = /^\{"model":("(?:[^"\\]|\\.)*")/
/** Returns the model that a body names; undefined for a body that does not begin with one. */
function modelIn(body: EngineCall['body']): string | undefined {
  const head = typeof body === 'string' || body instanceof Uint8Array ? headOf(body) : ''
  const [, name] = firstModel.exec(head) ?? []
  return name === undefined ? undefined : (JSON.parse(name) as string)
}

/**
 * Serves the adapters of one engine. Requests name an adapter as their model; one that the engine does not have is refused,
 * because some engines would answer with the base. Engines that load adapters while they run get each with its first
 * request, and lose those that are no longer configured.
 */
export function openEngineAdapters(options: {
  support: AdapterSupport
  /** The model as it is configured now; undefined if it is no longer offered. */
  configured: () => Model | undefined
  /** Whether the engine gets no more requests, because the model has another one. */
  isReplaced: () => boolean
  /** What was known of the adapters when the engine was started; absent if it had none. */
  plan: AdaptersPlan | undefined
  /** The name of the base in requests, and the text before the names of adapters. */
  upstreamId: string
  prefix: string
  /** Sends a request to the engine. Resolves with the text of a refusal; undefined if it was accepted. */
  post: (path: string, body: object) => Promise<string | undefined>
}): NameAdapter {
  const { support, configured, isReplaced, plan, upstreamId, prefix, post } = options
  const started: readonly AdapterPlan[] = plan?.list ?? []
  const usable = started.filter(({ fault }) => fault === undefined)
  /** The sources of loaded adapters by name; a promise while it loads. */
  const loaded = new Map<string, { source: string; loading: Promise<void> | undefined }>()

  function adapters() {
    const model = configured()
    return model ? enabledAdapters(model) : []
  }

  /** Waits until another engine has the adapters that were configured since the start of this one, and fails to be repeated. */
  async function changed(id: string): Promise<never> {
    for (const until = performance.now() + changeMs; !isReplaced() && performance.now() < until; ) await delay(20)
    throw new Failure('worker_error', `The engine was started without the adapter '${id}'. Trying again may help.`)
  }

  async function load(id: string, source: string, before: string | undefined): Promise<void> {
    const { load: path, unload } = support.routes!
    if (before !== undefined) await post(unload, { lora_name: id })
    const offered = new Set(adapters().map(one => one.id))
    for (const [name, { loading }] of loaded)
      if (!offered.has(name) && !loading) {
        loaded.delete(name)
        await post(unload, { lora_name: name })
      }
    const refusal = await post(path, { lora_name: id, lora_path: source })
    if (refusal === undefined) return
    const model = configured()
    const tooLarge = plan && model && rankFault(model, await adapterRank(source), plan)
    throw new Failure(
      'model_load_failed',
      `The engine cannot load the adapter '${id}': ${tooLarge ?? oneLine(withoutLocations(refusal), 300)}`,
    )
  }

  function ensureLoaded(id: string, source: string): Promise<void> | undefined {
    const known = loaded.get(id)
    if (known?.source === source) return known.loading
    const own = { source, loading: undefined as Promise<void> | undefined }
    const loading = Promise.resolve(known?.loading)
      .catch(() => {})
      .then(() => load(id, source, known?.source))
    own.loading = loading.then(
      () => {
        own.loading = undefined
      },
      (thrown: unknown) => {
        if (loaded.get(id) === own) loaded.delete(id)
        throw thrown
      },
    )
    loaded.set(id, own)
    return own.loading
  }

  return call => {
    const { body } = call
    if (started.length === 0 && loaded.size === 0 && adapters().length === 0) return call
    const name = modelIn(body)
    if (name === undefined || !(typeof body === 'string' || body instanceof Uint8Array)) return call
    const chosen = (at: number | undefined, scale: number) => {
      const members = support.members?.(at, scale)
      return members === undefined ? call : { ...call, body: withMembers(body, members) }
    }
    if (name === upstreamId) return usable.length > 0 ? chosen(undefined, 0) : call
    const id = name.startsWith(prefix) ? name.slice(prefix.length) : name
    const adapter = adapters().find(one => one.id === id)
    if (!adapter) return Promise.reject(new Failure('model_not_found', `The model '${id}' is no longer offered here.`))
    const known = started.find(one => one.id === id && one.source === adapter.source && one.scale === adapter.scale)
    if (known?.fault !== undefined) return Promise.reject(new Failure('model_load_failed', known.fault))
    if (support.routes) return ensureLoaded(id, adapter.source)?.then(() => call) ?? call
    return known ? chosen(usable.indexOf(known), known.scale) : changed(id)
  }
}

/** Sends a request to an engine that is not about its work. */
export function engineRoute(
  endpoint: Endpoint,
  headers: readonly string[],
): (path: string, body: object) => Promise<string | undefined> {
  return async (path, body) => {
    const { askEngine } = await import('./ask-engine.ts')
    try {
      const { status, text } = await askEngine(endpoint, { path, headers, body, timeoutMs: longestLoadMs })
      if (status < 300) return undefined
      return engineErrorIn(text).message || text || `It answered ${status}.`
    } catch (cause) {
      throw new Failure('worker_error', 'The engine broke off while it loaded an adapter. Trying again may help.', {
        cause,
      })
    }
  }
}

/** How long the decision for another engine may take: the files of the model are read before. */
const changeMs = 10_000
/** An adapter has at most a few gigabytes. */
const longestLoadMs = 120_000
