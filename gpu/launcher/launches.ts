import { setTimeout as pause } from 'node:timers/promises'
import { Failure } from '../../core/failure.ts'
import type { Log } from '../../core/log.ts'
import {
  type Endpoint,
  type Launch,
  type Launcher,
  type LaunchOptions,
  type ProcessExit,
  secretsIn,
} from './launcher.ts'
import { type EngineOutputs, lastError, type Output } from './outputs.ts'

/** One launch, followed from its start, or from its take-over, to its end. */
export interface Launched {
  launchId: string
  /** Its process id, for display; null if it is not known. */
  pid: () => number | null
  /** The name of its machine; null if it is this one, or not known yet. */
  node: () => string | null
  /** Where it answers; undefined before that is known. */
  endpoint: () => Endpoint | undefined
  /** Why it does not run yet, as a sentence; null once it does. */
  waits: () => string | null
  /**
   * Calls the listener with the time at which its machine ends it, epoch milliseconds, at once and when that changes; null where
   * there is no such time, or it is not known yet. One listener.
   */
  watchEndsAt: (listener: (endsAt: number | null) => void) => void
  /** Calls the listener when it cannot be reached any more, at once if that is so now, and when it can be again. One listener. */
  watchReach: (listener: (isReached: boolean) => void) => void
  /** A request could not connect to it: its launcher looks at once whether it can be reached. Absent where it cannot tell. */
  check: (() => void) | undefined
  /** Resolves when the engine and all its descendants have ended. */
  exited: Promise<ProcessExit>
  /** Time of the last distinct output line, or of the start: milliseconds on the monotonic clock. */
  lastOutputAt: () => number
}

/** Milliseconds that each call may take, and a start with its repetitions; and between two attempts of a call. */
const usualLimits = { start: 30_000, list: 10_000, stop: 10_000, starts: 120_000, retry: 1_000 }
/** Milliseconds in which the rest of an output is read after the end. */
const lastOutputMs = 1_000

interface Entry {
  launched: Launched
  output: Output
  /** What was listed of it last, and when it was for the first time. */
  known: Launch | undefined
  listed: PromiseWithResolvers<void>
  endsAtChanged: (endsAt: number | null) => void
  isReached: boolean
  reachChanged: (isReached: boolean) => void
  /** Number of the first list that says by its absence that it has ended. */
  expectedFrom: number
  /** An earlier server has started it, and it is not taken over. */
  isLeft: boolean
  exit: (exit: ProcessExit) => void
  /** It has ended, or another server has it. `over` resolves once its output was read. */
  isOver: boolean
  over: PromiseWithResolvers<void>
  /** Resolves when its output was read to its end; ended by `following`. */
  read: Promise<void>
  following: AbortController
}

/**
 * Follows the launches of one launcher: makes of its lists what the fleet waits for. A list that fails changes nothing: what ran
 * runs on until a list says otherwise. Resolves once it has listed what earlier servers have left, or has failed to.
 */
export async function openLaunches({
  launcher,
  outputs,
  pool,
  log,
  limits = usualLimits,
}: {
  launcher: Launcher
  outputs: EngineOutputs
  /** The pool of the launcher; absent: this machine. The output of its ended launches replaces that of no other pool. */
  pool?: string
  log: Log
  limits?: typeof usualLimits
}) {
  const entries = new Map<string, Entry>()
  const fields = pool === undefined ? {} : { pool }
  /** Launches that nobody wants any more and that may still appear: they are stopped as soon as they are listed. */
  const abandoned = new Set<string>()
  let lists = 0
  let listing: Promise<void> | undefined
  let isStale = false
  const closing = new AbortController()
  /** Why the last list failed; null if it did not. */
  let fault: string | null = null
  let timer: NodeJS.Timeout | undefined

  function add({ launchId, modelId, secrets }: Pick<Launch, 'launchId' | 'modelId' | 'secrets'>): Entry {
    const { promise: exited, resolve: exit } = Promise.withResolvers<ProcessExit>()
    let lastOutputAt = performance.now()
    const entry: Entry = {
      launched: {
        launchId,
        pid: () => entry.known?.pid ?? null,
        node: () => entry.known?.node ?? null,
        endpoint: () => entry.known?.endpoint ?? undefined,
        waits: () =>
          entry.known && entry.known.state !== 'pending' ? null : (entry.known?.reason ?? 'It does not run yet.'),
        watchEndsAt(listener) {
          entry.endsAtChanged = listener
          listener(entry.known?.endsAt ?? null)
        },
        watchReach(listener) {
          entry.reachChanged = listener
          if (!entry.isReached) listener(false)
        },
        check: launcher.check && (() => launcher.check?.(launchId)),
        exited,
        lastOutputAt: () => lastOutputAt,
      },
      output: outputs.open({ launchId, modelId, secrets, ...(pool !== undefined && { pool }) }),
      known: undefined,
      listed: Promise.withResolvers(),
      endsAtChanged() {},
      isReached: true,
      reachChanged() {},
      expectedFrom: Number.POSITIVE_INFINITY,
      isLeft: false,
      exit,
      isOver: false,
      over: Promise.withResolvers(),
      read: Promise.resolve(),
      following: new AbortController(),
    }
    entry.read = readOutput(entry, () => (lastOutputAt = performance.now()))
    entries.set(launchId, entry)
    return entry
  }

  /** Nothing more is expected of it. */
  function remove(entry: Entry): void {
    const { launchId } = entry.launched
    entry.isOver = true
    entry.following.abort()
    entry.listed.resolve()
    entry.over.resolve()
    entries.delete(launchId)
    outputs.ended(launchId)
  }

  function abandon(entry: Entry): void {
    abandoned.add(entry.launched.launchId)
    remove(entry)
    void refresh()
  }

  /** Reads what a launch prints. After an error it goes on where it was. */
  async function readOutput(entry: Entry, progressed: () => void): Promise<void> {
    const { output, following, launched, listed } = entry
    const { signal } = following
    await listed.promise
    for (let next = 0; !signal.aborted; ) {
      try {
        for await (const { at, bytes } of launcher.logs(launched.launchId, next, signal)) {
          const before = output.changes
          output.push(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length))
          next = at + bytes.length
          if (output.changes !== before) progressed()
        }
        return
      } catch {
        await pause(limits.retry, undefined, { signal, ref: false }).catch(() => {})
      }
    }
  }

  /** Lists once more: one list at a time, and another where something has changed meanwhile. */
  function refresh(): Promise<void> {
    if (closing.signal.aborted) return Promise.resolve()
    isStale = true
    listing ??= listWhileStale().finally(() => {
      listing = undefined
      clearTimeout(timer)
      if (closing.signal.aborted) return
      // Announced after the last list had ended.
      if (isStale) return void refresh()
      timer = setTimeout(
        () => void refresh(),
        fault === null ? launcher.pollMs : Math.min(launcher.pollMs, limits.retry),
      )
      timer.unref()
    })
    return listing
  }

  async function listWhileStale(): Promise<void> {
    while (isStale && !closing.signal.aborted) {
      isStale = false
      const number = ++lists
      try {
        const all = await limited(limits.list, 'list', signal => launcher.list(signal))
        if (closing.signal.aborted) return
        if (fault !== null) log.info('It is known again which engines run', fields)
        fault = null
        apply(all, number)
      } catch (thrown) {
        if (fault === null) log.warn('It is not known which engines run', fields, thrown)
        fault = (thrown as Error).message
      }
    }
  }

  function apply(all: readonly Launch[], number: number): void {
    const listed = new Set<string>()
    for (const launch of all) {
      listed.add(launch.launchId)
      const entry = entries.get(launch.launchId)
      if (entry) update(entry, launch)
      else if (launch.state !== 'gone') addLeft(launch)
    }
    for (const [launchId, entry] of entries)
      if (number >= entry.expectedFrom && !listed.has(launchId)) ended(entry, { status: null, reason: null })
  }

  /** What is listed and was not started here: an earlier server has left it, or it was abandoned. */
  function addLeft(launch: Launch): void {
    const entry = add(launch)
    entry.isLeft = true
    update(entry, launch)
    if (abandoned.delete(launch.launchId)) void stopLaunch(entry, 0)
  }

  function update(entry: Entry, launch: Launch): void {
    if (entry.isOver) return
    const [before, now] = [entry.known?.endpoint?.generation, launch.endpoint?.generation]
    const endedAt = entry.known?.endsAt ?? null
    entry.known = launch
    setReached(entry, launch.isUnreachable !== true)
    if (endedAt !== launch.endsAt) entry.endsAtChanged(launch.endsAt)
    entry.expectedFrom = Math.min(entry.expectedFrom, lists)
    entry.listed.resolve()
    if (launch.state === 'gone') return ended(entry, launch)
    if (before === undefined || now === undefined || before === now) return
    // Whoever waits for its end gets a new engine, as after any other end.
    entry.exit({ status: 'restarted', isLost: true, lastError: '' })
    abandon(entry)
  }

  /** One that ends is not reached again. */
  function setReached(entry: Entry | undefined, isReached: boolean): void {
    if (entry?.known?.state !== 'running' || entry.isReached === isReached) return
    entry.isReached = isReached
    entry.reachChanged(isReached)
  }

  function ended(entry: Entry, { status, reason }: Pick<Launch, 'status' | 'reason'>): void {
    if (entry.isOver) return
    entry.isOver = true
    entry.listed.resolve()
    void Promise.race([entry.read, pause(lastOutputMs, undefined, { ref: false })]).then(async () => {
      entry.output.end()
      const words = lastError(entry.output.lines())
      const shown = status ?? 'ended'
      const lastWords = words || (status === null ? (reason ?? '') : '')
      const hints = await launcher.hints?.(entry.launched.launchId, shown, words)
      entry.exit({ status: shown, isLost: status === null, lastError: lastWords, ...hints })
      remove(entry)
    })
  }

  /**
   * Starts a launch. Resolves when it is accepted. While nobody knows whether that has worked it is repeated, which starts
   * nothing twice; after `abort`, and after two minutes, it is given up, and is stopped should it appear. Rejects with Failure
   * `worker_error`.
   */
  async function start(options: LaunchOptions, abort?: AbortSignal): Promise<Launched> {
    const { launchId } = options
    const before = entries.get(launchId)
    if (before) return before.launched
    const entry = add({ ...options, secrets: secretsIn(options.env) })
    const deadline = performance.now() + limits.starts
    for (;;) {
      try {
        await limited(limits.start, 'start', signal => launcher.start(options, signal))
        break
      } catch (thrown) {
        if (thrown instanceof Failure && thrown.code === 'worker_error') {
          remove(entry)
          throw thrown
        }
        if (abort?.aborted || closing.signal.aborted || performance.now() > deadline) {
          abandon(entry)
          const cause = (thrown as Error).message
          throw new Failure('worker_error', 'It could not be started.', { engineText: cause })
        }
        await pause(limits.retry, undefined, { signal: abort, ref: false }).catch(() => {})
      }
    }
    // A list that has begun before may lack it.
    entry.expectedFrom = lists + 1
    await refresh()
    return entry.launched
  }

  /** Asks until that is accepted, or it is over. */
  async function stopLaunch(entry: Entry, graceMs: number): Promise<void> {
    const { launchId } = entry.launched
    for (let attempt = 1; !entry.isOver && !closing.signal.aborted; attempt++)
      try {
        await limited(limits.stop, 'stop', signal => launcher.stop(launchId, graceMs, signal))
        return void refresh()
      } catch (thrown) {
        if (attempt === 1) log.warn('An engine cannot be stopped yet', { launch: launchId }, thrown)
        await pause(limits.retry, undefined, { ref: false })
      }
  }

  function stopFollowing(): void {
    closing.abort()
    unwatch()
    clearTimeout(timer)
    for (const { following } of entries.values()) following.abort()
  }

  const unwatch = launcher.watch(() => void refresh())
  launcher.watchReach?.((launchId, isReached) => setReached(entries.get(launchId), isReached))
  await refresh()

  return {
    start,
    /** Ends a launch. Resolves when the engine and all its descendants have ended, or when another server has got it. */
    async stop(launchId: string, graceMs: number): Promise<void> {
      const entry = entries.get(launchId)
      if (!entry) return
      await stopLaunch(entry, graceMs)
      await entry.over.promise
    },
    /** The launches that an earlier server has left, and that are neither taken over nor ended yet. */
    left: (): LeftLaunch[] =>
      [...entries.values()].flatMap(({ isLeft, isOver, known }) =>
        isLeft && !isOver && known ? [{ ...known, pool }] : [],
      ),
    /** Takes over a launch that an earlier server has left; undefined if there is none, or not any more. */
    adopt(launchId: string): Launched | undefined {
      const entry = entries.get(launchId)
      if (!entry?.isLeft || entry.isOver) return undefined
      entry.isLeft = false
      return entry.launched
    },
    /** Sets what the next server is told of an engine, should it outlive this one. */
    note: (launchId: string, note: object): void => launcher.note(launchId, note),
    /** The last lines that a launch has printed, oldest first, up to a megabyte. Kept for the latest ended launches too. */
    logs: outputs.lines,
    /** Lets go of all engines without ending them, for another server of the same data directory. */
    async leave(): Promise<void> {
      stopFollowing()
      // Whoever waits for the end of one waits for nothing more: the next server ends it.
      for (const entry of entries.values()) remove(entry)
      await launcher.leave()
    },
    /** Follows nothing more, and closes the launcher. */
    async close(): Promise<void> {
      stopFollowing()
      await launcher.close()
      for (const entry of entries.values()) remove(entry)
    },
  }
}

/** A launch that an earlier server has left. `pool`: that of its launcher; undefined: this machine. */
export type LeftLaunch = Launch & { pool?: string | undefined }

export type Launches = Awaited<ReturnType<typeof openLaunches>>

/** The result of a call; rejects when it takes longer, also where the launcher does not heed its signal. */
async function limited<T>(ms: number, name: string, call: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const abort = new AbortController()
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(() => {
    late.reject(new Error(`The launcher has not answered '${name}' within ${ms / 1000} s.`))
    abort.abort()
  }, ms)
  timer.unref()
  try {
    return await Promise.race([call(abort.signal), late.promise])
  } finally {
    clearTimeout(timer)
  }
}
