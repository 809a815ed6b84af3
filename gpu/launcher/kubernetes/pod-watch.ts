import { setTimeout as pause } from 'node:timers/promises'
import { abortable } from '../abortable.ts'
import { ApiRefusal, type ClusterApi } from './cluster-api.ts'
import type { ClusterLists } from './cluster-lists.ts'
import { labels, type PodObject, type PodState, podStateIn } from './pod-state.ts'

/** A name that no pod has. */
const noPod = 'metadata.name=-'
/** Seconds after which the API server ends a watch, and it is begun again. */
const watchSeconds = 280
const listMs = 30_000
/** Milliseconds before the next attempt, by how many have failed in a row. */
const retryMs = (failures: number): number => Math.min(10_000, 200 * 2 ** Math.min(failures, 10))

export interface PodWatchOptions {
  api: ClusterApi
  lists: ClusterLists
  serverId: string
  /** Called with every pod of the server once all were listed, with the number of that list, and each time pods have changed. */
  seen: (pods: readonly PodState[], list: number | null) => void
}

interface WatchEvent {
  type: string
  object: PodObject & { code?: number; message?: string; metadata?: { resourceVersion?: string } }
}

/** Knows the pods of a server: lists them, watches what changes, and lists them again after a gap. */
export function openPodWatch({ api, lists, serverId, seen }: PodWatchOptions) {
  const path = `/api/v1/namespaces/${api.namespace}/pods`
  const query = { labelSelector: `${labels.server}=${serverId}` }
  const closing = new AbortController()
  /** The version from which changes are watched; empty before the first list, and after a gap. */
  let version = ''
  let isWatching = false
  let count = 0
  let listing: Promise<void> | undefined
  /** The pods of the last list, by their texts. */
  let listed = new Map<string, PodState>()
  /** Pods that have changed since the list in progress has begun, which may tell older states of them; null: it was removed. */
  let changedSince = new Map<string, PodState | null>()
  let wake = Promise.withResolvers<void>()

  async function listAll(): Promise<void> {
    const number = ++count
    const signal = AbortSignal.any([closing.signal, AbortSignal.timeout(listMs)])
    const all = new Map<string, PodState>()
    const now = new Map<string, PodState>()
    changedSince = new Map()
    let from = ''
    for await (const page of lists.pages(path, query, { kind: 'pods', serverId }, signal)) {
      // Pages of one list have the version of its first.
      from ||= page.version
      for (const text of page.texts) {
        const pod = listed.get(text) ?? (JSON.parse(text) as PodState)
        now.set(text, pod)
        all.set(pod.name, pod)
      }
    }
    listed = now
    // A watch goes on from its own version. Without one the next begins at the list, and tells later changes again.
    if (!isWatching) version = from
    else
      for (const [name, pod] of changedSince)
        if (pod) all.set(name, pod)
        else all.delete(name)
    seen([...all.values()], number)
    wake.resolve()
  }

  /** One list at a time. */
  const relist = (): Promise<void> => (listing ??= listAll().finally(() => (listing = undefined)))

  /** Follows changes until the API server ends that. */
  async function follow(): Promise<void> {
    const from = version
    const more = {
      watch: '1',
      allowWatchBookmarks: 'true',
      resourceVersion: from,
      timeoutSeconds: String(watchSeconds),
    }
    const decoder = new TextDecoder()
    let rest = ''
    try {
      const call = { path, query: { ...query, ...more } }
      for await (const bytes of api.stream(call, closing.signal, () => (isWatching = true))) {
        const lines = (rest + decoder.decode(bytes, { stream: true })).split('\n')
        rest = lines.pop()!
        const changed = lines.flatMap(line => (line === '' ? [] : (applied(JSON.parse(line) as WatchEvent) ?? [])))
        if (changed.length > 0) seen(changed, null)
      }
    } finally {
      isWatching = false
    }
  }

  function applied({ type, object }: WatchEvent): PodState | undefined {
    if (type === 'ERROR') throw new ApiRefusal(object.code ?? 500, 'Expired', object.message ?? 'the watch has failed')
    version = object.metadata?.resourceVersion ?? version
    if (type === 'BOOKMARK') return undefined
    const pod = podStateIn(object, serverId)
    if (!pod) return undefined
    const isRemoved = type === 'DELETED'
    if (listing) changedSince.set(pod.name, isRemoved ? null : pod)
    return { ...pod, isRemoved }
  }

  async function run(): Promise<void> {
    for (let failures = 0; !closing.signal.aborted; )
      try {
        if (version === '') await relist()
        await follow()
        failures = 0
        // An API server, or a proxy before it, that ends each watch at once is not asked without a break.
        await pause(retryMs(0), undefined, { signal: closing.signal, ref: false })
      } catch (thrown) {
        if (closing.signal.aborted) return
        // Changes since then are not known any more.
        if (thrown instanceof ApiRefusal && (thrown.status === 410 || thrown.status === 400)) version = ''
        else failures++
        wake = Promise.withResolvers()
        await Promise.race([
          wake.promise,
          pause(retryMs(failures), undefined, { signal: closing.signal, ref: false }),
        ]).catch(() => {})
      }
  }

  const running = run()
  return {
    /** Number of the last list that has begun. */
    lists: (): number => count,
    /** Resolves when the pods are known as they are about now. Rejects if the API server does not answer. */
    async fresh(signal: AbortSignal): Promise<void> {
      if (!isWatching) return await abortable(relist(), signal)
      // Only whether it answers is asked: its answer has no pods. With this version a limit would be ignored.
      await api.request({ path, query: { ...query, fieldSelector: noPod, resourceVersion: '0' } }, signal)
      if (!isWatching) await abortable(relist(), signal)
    },
    /** All pods are listed again, as one that should be known is not. */
    relist,
    close(): Promise<void> {
      closing.abort()
      return running
    },
  }
}
export type PodWatch = ReturnType<typeof openPodWatch>
