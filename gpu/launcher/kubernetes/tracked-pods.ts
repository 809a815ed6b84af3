import { setTimeout as pause } from 'node:timers/promises'
import type { Log } from '../../../core/log.ts'
import { holdControls } from '../held-controls.ts'
import type { Launch } from '../launcher.ts'
import { ApiRefusal, type ClusterApi } from './cluster-api.ts'
import type { ClusterLists } from './cluster-lists.ts'
import { comparePods, type HeldPod, listedPod, type PodRecord } from './listed-pods.ts'
import { openPodLog, type PodLog } from './pod-log.ts'
import { partNames, partSetName, podName } from './pod-manifest.ts'
import type { PodState } from './pod-state.ts'
import { openPodWatch, type PodWatch } from './pod-watch.ts'
import { openTrackedGroups, type TrackedGroups } from './tracked-groups.ts'

/** Milliseconds between two looks at launches of which nothing is heard, and after which a launch is asked for its events. */
const lookMs = 5_000
/** Milliseconds in which the last output of an engine is read before its pod is removed. */
const lastOutputMs = 5_000
const callMs = 10_000
const keptEnded = { ms: 10 * 60_000, count: 256 }

export interface TrackingOptions {
  pool: string
  serverId: string
  api: ClusterApi
  lists: ClusterLists
  records: { write(record: PodRecord): Promise<void>; remove(launchId: string): Promise<void> }
  /**
   * Milliseconds for which engines live without a server, between two words to each wrapper, and for which a pod may stay after
   * its time.
   */
  graceMs: number
  beatMs: number
  lostMs: number
  /** That of the wrapper. */
  image: string
  log: Log
}

/** The launches of this server, as far as its pods tell: the owner of their state. */
export class TrackedPods {
  readonly held = new Map<string, HeldPod>()
  readonly listeners = new Set<() => void>()
  readonly reachListeners = new Set<(launchId: string, isReached: boolean) => void>()
  readonly watch: PodWatch
  readonly groups: TrackedGroups
  readonly #options: TrackingOptions
  readonly #controls: ReturnType<typeof holdControls>
  readonly #logs = new Map<string, PodLog>()
  readonly #closing = new AbortController()
  readonly #timer: NodeJS.Timeout
  /** How each launch was announced last. */
  readonly #shown = new Map<string, string>()

  constructor(options: TrackingOptions, records: readonly PodRecord[]) {
    this.#options = options
    this.#controls = holdControls({
      beatMs: options.beatMs,
      // The watch says what has become of the pod.
      closed() {},
      changed: (launchId, isReached) => {
        for (const listener of this.reachListeners) listener(launchId, isReached)
        this.#announce([launchId])
      },
    })
    this.groups = openTrackedGroups({
      ...options,
      held: this.held,
      changed: pod => this.#update([pod], null),
      remove: (pod, seconds, signal) => this.remove(pod, seconds, signal),
      closing: this.#closing.signal,
    })
    for (const record of records) {
      const launch = this.hold(record)
      launch.expectedFrom = 1
      if (record.uid !== null) this.#keepDeadline(launch)
    }
    this.watch = openPodWatch({
      ...options,
      seen: (pods, list) => this.#update(this.groups.take(pods, list !== null), list),
    })
    this.#timer = setInterval(() => void this.#look(), lookMs)
    this.#timer.unref()
  }

  hold(record: PodRecord): HeldPod {
    const { launchId, end, nodes = 1 } = record
    const launch: HeldPod = {
      record,
      pod: undefined,
      expectedFrom: Number.POSITIVE_INFINITY,
      isEnding: false,
      deletingSince: null,
      event: undefined,
      isCleaning: false,
      withdrawal: null,
    }
    this.held.set(launchId, launch)
    if (end) return launch
    const names = nodes > 1 ? partNames(launchId, nodes) : [podName(launchId)]
    this.#logs.set(
      launchId,
      openPodLog(this.#options.api, names, () => launch.record.end !== null),
    )
    return launch
  }

  output = (launchId: string): PodLog | undefined => this.#logs.get(launchId)

  list(): Launch[] {
    return [...this.held.values()].flatMap(launch => this.#listed(launch) ?? [])
  }

  #listed = (launch: HeldPod): Launch | undefined =>
    listedPod(launch, this.#controls.isUnreachable(launch.record.launchId))

  /** The nodes on which engines cannot be reached: of one that spans nodes the first, which has its address. */
  unreachableNodes = (): string[] => [
    ...new Set(
      [...this.held.values()].flatMap(launch => {
        const { launchId, end } = launch.record
        const node = end || !this.#controls.isUnreachable(launchId) ? null : listedPod(launch)?.node
        return node?.split(', ', 1) ?? []
      }),
    ),
  ]

  /** A request could not connect to an engine: looks at once whether its wrapper answers. */
  check = (launchId: string): void => this.#controls.check(launchId)

  /** The pod of a launch was created. Lists that have begun before may lack it. */
  accepted(launch: HeldPod, uid: string): void {
    launch.record.uid = uid
    launch.expectedFrom = this.watch.lists() + 1
    this.#keepDeadline(launch)
    // A lost record is found again by the labels of the pod.
    void this.#options.records.write(launch.record).catch(() => {})
  }

  #keepDeadline(launch: HeldPod): void {
    const { nodes = 1, end } = launch.record
    if (nodes > 1 && !end) this.groups.deadlines.keep(launch)
  }

  /** Takes over what was seen of launches, each as one pod. */
  #update(pods: readonly PodState[], list: number | null): void {
    const { pool, lostMs, log } = this.#options
    const now = performance.now()
    const { found, ended, surplus, unseen } = comparePods(this.held, pods, { list, now, lostMs })
    const changed: string[] = []
    for (const [launchId, pod] of found) {
      const launch = this.held.get(launchId)!
      // A list of all has mostly the pods that are known.
      if (launch.pod === pod && !pod.group) continue
      changed.push(launchId)
      launch.pod = pod
      launch.deletingSince = pod.deletingIn === null ? null : (launch.deletingSince ?? now)
      if (pod.group) this.groups.endWithFirst(launch)
      if (launch.record.uid === null) void this.#identify(launch, pod)
      this.#logs.get(launchId)?.begin(pod.group?.begun ?? (pod.engine.state === 'waiting' ? [] : [0]))
      this.#connect(launch)
    }
    for (const { launchId, end } of ended) this.end(this.held.get(launchId)!, end)
    if (surplus.length > 0)
      log.warn('Deleting pods that belong to no engine of this server', {
        pool,
        pods: surplus.map(one => one.name).join(' '),
      })
    for (const one of surplus) void this.#removeSurplus(one).catch(() => {})
    for (const launchId of unseen) void this.#identify(this.held.get(launchId)!)
    this.#announce(changed)
  }

  async #removeSurplus(pod: PodState): Promise<void> {
    const { signal } = this.#closing
    if (!pod.group) return void (await this.remove(pod, 1, signal))
    await this.groups.removeSet(pod.launchId, null, signal)
    await this.groups.deadlines.remove(pod.launchId, signal)
  }

  /** Looks what a launch without a known pod, or of an unknown start, is. */
  async #identify(launch: HeldPod, pod?: PodState): Promise<void> {
    const isSet = pod === undefined || pod.group !== undefined
    const uid = isSet ? await this.groups.find(launch, this.#closing.signal).catch(() => null) : pod.uid
    if (uid !== null && launch.record.uid === null) this.accepted(launch, uid)
  }

  /** Tells listeners where one of these launches is listed as something else than before. */
  #announce(launchIds: readonly string[]): void {
    let isChanged = false
    for (const launchId of launchIds) {
      const launch = this.held.get(launchId)
      const one = launch && this.#listed(launch)
      const text = one && [one.state, one.reason, one.node, one.endpoint?.origin, one.isUnreachable].join(' ')
      isChanged ||= text !== this.#shown.get(launchId)
      if (text === undefined) this.#shown.delete(launchId)
      else this.#shown.set(launchId, text)
    }
    if (isChanged) for (const listener of this.listeners) listener()
  }

  end(launch: HeldPod, end: Pick<Launch, 'status' | 'reason'>): void {
    const { record } = launch
    if (record.end) return
    record.end = { ...end, at: Date.now() }
    void this.#options.records.write(record).catch(() => {})
    this.#controls.drop(record.launchId)
    void this.#clean(launch)
    this.#forgetOld()
    this.#announce([record.launchId])
  }

  /** Removes what there is of a launch that has ended, once its output was read. */
  async #clean(launch: HeldPod): Promise<void> {
    const { launchId, uid } = launch.record
    const output = this.#logs.get(launchId)
    launch.isCleaning = true
    output?.begin(ranksOf(launch.record))
    await Promise.race([output?.read, pause(lastOutputMs, undefined, { ref: false })])
    output?.close()
    while (!this.#closing.signal.aborted)
      try {
        if (uid !== null) await this.delete(launch, 1, this.#closing.signal)
        await this.removeRest(launch.record, this.#closing.signal)
        break
      } catch {
        await pause(lookMs, undefined, { signal: this.#closing.signal, ref: false }).catch(() => {})
      }
    launch.isCleaning = false
  }

  /** Deletes what a launch was accepted as, with so many seconds to end. Resolves with whether it was there, as far as that is known. */
  async delete(launch: HeldPod, seconds: number, signal: AbortSignal): Promise<boolean> {
    const { launchId, uid, nodes = 1 } = launch.record
    if (nodes === 1) return await this.remove({ name: podName(launchId), uid: uid! }, seconds, signal)
    await this.groups.withdraw(launch, seconds, signal)
    return true
  }

  /** Deletes a pod, with so many seconds to end. A later call may shorten that. Resolves with whether it was there. */
  async remove({ name, uid }: { name: string; uid: string }, seconds: number, signal: AbortSignal): Promise<boolean> {
    const path = `/api/v1/namespaces/${this.#options.api.namespace}/pods/${name}`
    const body = { gracePeriodSeconds: seconds, preconditions: { uid } }
    try {
      await this.#options.api.request({ method: 'DELETE', path, body }, this.#limited(signal))
      return true
    } catch (thrown) {
      // Another pod has its name now, or none.
      if (thrown instanceof ApiRefusal && (thrown.status === 404 || thrown.status === 409)) return false
      throw thrown
    }
  }

  /** Removes what a launch has besides its pods: its secret, and the Job that owns its set. */
  async removeRest({ launchId, nodes = 1 }: PodRecord, signal: AbortSignal): Promise<void> {
    if (nodes > 1) await this.groups.deadlines.remove(launchId, signal)
    const path = `/api/v1/namespaces/${this.#options.api.namespace}/secrets/${podName(launchId)}`
    await this.#options.api.request({ method: 'DELETE', path }, this.#limited(signal)).catch((thrown: unknown) => {
      if (!(thrown instanceof ApiRefusal && thrown.isFinal)) throw thrown
    })
  }

  #limited = (signal: AbortSignal) => AbortSignal.any([signal, AbortSignal.timeout(callMs)])

  /**
   * Keeps a connection to every wrapper that runs. It waits for a server from its own start, though its engine may still pull its
   * image, or wait for other nodes.
   */
  #connect(launch: HeldPod): void {
    const { launchId, certificate, key, ports } = launch.record
    const { state, node } = listedPod(launch) ?? {}
    const { address: host, wrapper } = launch.pod ?? {}
    if (!host || wrapper?.state !== 'running' || (state !== 'pending' && state !== 'running')) return
    const address = { host, port: ports.wrapper }
    this.#controls.keep({ launchId, address, tls: { certificate, key }, node: node ?? null })
  }

  /** Looks at launches of which nothing is heard: pods of lost nodes, and those that do not start. */
  async #look(): Promise<void> {
    const live = [...this.held.values()].filter(({ record, pod }) => !record.end && pod)
    for (const launch of live) this.#connect(launch)
    this.#update(
      live.flatMap(({ pod }) => (pod?.deletingIn == null && !pod?.group?.fault ? [] : [pod])),
      null,
    )
    const pending = [...this.held.values()].filter(({ record: { end, uid } }) => !end && uid !== null)
    for (const launch of pending) {
      const object = eventObjectOf(launch)
      launch.event = object && (await this.#lastWarning(object).catch(() => launch.event))
    }
    this.#announce(pending.map(({ record }) => record.launchId))
  }

  /** The last warning of Kubernetes about an object. `object`: the field of events that names it, and its value. */
  async #lastWarning(object: string): Promise<string | undefined> {
    const path = `/api/v1/namespaces/${this.#options.api.namespace}/events`
    const query = { fieldSelector: `${object},type=Warning`, limit: '20' }
    const { items = [] } = (await this.#options.api.request({ path, query }, this.#limited(this.#closing.signal))) as {
      items?: { message?: string; lastTimestamp?: string | null; eventTime?: string | null }[]
    }
    const timeOf = (one: (typeof items)[number]) => Date.parse(one.lastTimestamp ?? one.eventTime ?? '') || 0
    return items.toSorted((a, b) => timeOf(b) - timeOf(a))[0]?.message
  }

  #forgetOld(): void {
    const old = [...this.held.values()].filter(({ record, isCleaning }) => record.end && !isCleaning)
    for (const [at, { record }] of old.entries()) {
      if (at >= old.length - keptEnded.count && Date.now() - record.end!.at < keptEnded.ms) continue
      this.held.delete(record.launchId)
      this.#logs.delete(record.launchId)
      this.#shown.delete(record.launchId)
      void this.#options.records.remove(record.launchId).catch(() => {})
    }
  }

  /** Lets go of the wrappers, and watches no more. */
  async close(): Promise<void> {
    this.#closing.abort()
    clearInterval(this.#timer)
    this.#controls.close()
    for (const log of this.#logs.values()) log.close()
    await this.watch.close()
  }
}

/** What a launch waits for, as the events of Kubernetes name it; undefined if it waits for nothing that has events. */
function eventObjectOf({ pod, record: { launchId, nodes = 1 } }: HeldPod): string | undefined {
  const group = pod?.group
  const incomplete = pod ? group?.incomplete : nodes > 1 ? partSetName(launchId, 0) : null
  if (incomplete != null) return `involvedObject.name=${incomplete}`
  const waiting = group ? group.waiting : pod?.node != null && pod.phase === 'Pending' ? pod.uid : null
  return waiting === null ? undefined : `involvedObject.uid=${waiting}`
}

const ranksOf = ({ nodes = 1 }: PodRecord): number[] => Array.from({ length: nodes }, (_, rank) => rank)
