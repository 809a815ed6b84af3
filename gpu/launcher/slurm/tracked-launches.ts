import { rm } from 'node:fs/promises'
import type { Log } from '../../../core/log.ts'
import type { Control } from '../control.ts'
import { holdControls } from '../held-controls.ts'
import type { Launch } from '../launcher.ts'
import type { RunCommand } from './commands.ts'
import { compareJobs, type HeldLaunch, listedLaunch, type SlurmRecord } from './listed-launches.ts'
import { jobsIn, queueArguments } from './queue-lines.ts'

/** Milliseconds between two lists of its own: while a job begins or ends, while one waits for long, and while all run. */
const lookMs = { now: 50, soon: 1_000, waiting: 5_000, steady: 10_000 }
/** Milliseconds for which a launch that was started or told to end is looked at often. */
const soonMs = 60_000
/** How long launches that have ended are listed and their output is kept, milliseconds, and at most how many. */
const keptEnded = { ms: 10 * 60_000, count: 256 }

export interface TrackingOptions {
  pool: string
  serverId: string
  /** Milliseconds between two words to each wrapper. */
  beatMs: number
  /** Nodes on which no job of the pool runs, as its options say. */
  excluded: readonly string[]
  run: RunCommand
  records: { write(record: SlurmRecord): Promise<void>; remove(launchId: string): Promise<void> }
  outputOf: (launchId: string) => string
  /** Called when a launch has ended. */
  ended: (record: SlurmRecord) => void
  log: Log
}

/** The launches of this server, as far as the lists of its jobs tell: the owner of their state. */
export class TrackedLaunches {
  readonly held = new Map<string, HeldLaunch>()
  readonly listeners = new Set<() => void>()
  readonly reachListeners = new Set<(launchId: string, isReached: boolean) => void>()
  readonly #options: TrackingOptions
  readonly #controls: ReturnType<typeof holdControls>
  /** When each launch was started or told to end, or its wrapper was lost, on the monotonic clock. */
  readonly #touched = new Map<string, number>()
  readonly #closing = new AbortController()
  #lists = 0
  #applied = 0
  #timer: NodeJS.Timeout | undefined
  #shown = ''

  constructor(options: TrackingOptions, records: readonly SlurmRecord[]) {
    this.#options = options
    this.#controls = holdControls({
      beatMs: options.beatMs,
      closed: (launchId, wasReached) => (wasReached ? this.touch(launchId) : this.#lookIn(lookMs.waiting)),
      changed: (launchId, isReached) => {
        for (const listener of this.reachListeners) listener(launchId, isReached)
        this.#announce()
      },
    })
    for (const record of records) this.hold(record).expectedFrom = 0
    if (records.length > 0) this.#lookIn(lookMs.soon)
  }

  hold(record: SlurmRecord): HeldLaunch {
    const launch = { record, job: undefined, expectedFrom: Number.POSITIVE_INFINITY, isEnding: false, avoids: false }
    this.held.set(record.launchId, launch)
    return launch
  }

  /** Every launch. Rejects if Slurm does not answer: then nothing is known anew. */
  async list(signal: AbortSignal): Promise<Launch[]> {
    const { pool, serverId, run } = this.#options
    const number = ++this.#lists
    const { ok, stdout, fault } = await run('squeue', queueArguments(serverId), signal)
    if (!ok) throw new Error(`squeue does not tell the jobs of the pool '${pool}': ${fault}.`)
    if (number > this.#applied) {
      this.#applied = number
      this.#apply(stdout, number)
    }
    return this.#listed()
  }

  #listed = (): Launch[] =>
    [...this.held.values()].flatMap(launch => {
      const { launchId } = launch.record
      return listedLaunch(launch, this.#controls.isUnreachable(launchId)) ?? []
    })

  /** The nodes on which engines cannot be reached, as Slurm names them. */
  unreachableNodes(): string[] {
    const launches = [...this.held.values()].filter(({ record }) => !record.end)
    const nodes = launches.flatMap(({ record, job }) =>
      this.#controls.isUnreachable(record.launchId) ? (job?.node ?? []) : [],
    )
    return [...new Set(nodes)]
  }

  #apply(text: string, number: number): void {
    const { pool, serverId, run, log } = this.#options
    const { found, ended, surplus } = compareJobs(this.held, jobsIn(text, serverId), number)
    for (const [launchId, job] of found) {
      const launch = this.held.get(launchId)!
      launch.job = job
      if (launch.record.jobId === null) void this.accepted(launch, job.jobId)
    }
    for (const { launchId, end } of ended) this.end(this.held.get(launchId)!, end)
    if (surplus.length > 0) {
      const jobIds = surplus.map(({ jobId }) => jobId)
      log.warn('Cancelling Slurm jobs that belong to no engine of this server', { pool, jobs: jobIds.join(' ') })
      void run('scancel', jobIds, this.#closing.signal)
    }
    this.#connect()
    void this.#avoidNoMore()
    this.#forgetOld()
  }

  /** Jobs that wait may run anywhere again when no engine is unreachable any more: their node may be the only one. */
  async #avoidNoMore(): Promise<void> {
    if (this.unreachableNodes().length > 0) return
    for (const launch of this.held.values()) {
      const { jobId, end } = launch.record
      if (!launch.avoids || jobId === null) continue
      launch.avoids = false
      if (end || listedLaunch(launch)?.state !== 'pending') continue
      const update = ['update', `JobId=${jobId}`, `ExcNodeList=${this.#options.excluded.join(',')}`]
      const { ok } = await this.#options.run('scontrol', update, this.#closing.signal)
      // The next list tries again.
      if (!ok) launch.avoids = true
    }
  }

  /** Slurm has accepted the job of a launch. Lists that have begun before may lack it. */
  async accepted(launch: HeldLaunch, jobId: string): Promise<void> {
    launch.record.jobId = jobId
    launch.expectedFrom = this.#lists + 1
    this.touch(launch.record.launchId)
    // A lost record is found again by the comment of the job.
    await this.#options.records.write(launch.record).catch(() => {})
  }

  /** Something is about to change: it is looked at soon, and often for a while. */
  touch(launchId: string): void {
    this.#touched.set(launchId, performance.now())
    this.#lookIn(lookMs.now)
  }

  end({ record }: HeldLaunch, end: { status: string | null; reason: string | null }): void {
    record.end = { ...end, at: Date.now() }
    void this.#options.records.write(record).catch(() => {})
    this.#controls.drop(record.launchId)
    this.#options.ended(record)
  }

  control = (launchId: string): Control | undefined => this.#controls.find(launchId)

  /** A request could not connect to an engine: looks at once whether its wrapper answers. */
  check = (launchId: string): void => this.#controls.check(launchId)

  /** Keeps a connection to the wrapper of every engine that runs. */
  #connect(): void {
    for (const { record, job } of this.held.values()) {
      const { launchId, certificate, key } = record
      const address = job?.comment?.address
      if (!record.end && address) this.#controls.keep({ launchId, address, tls: { certificate, key }, node: job.node })
    }
  }

  #forgetOld(): void {
    const old = [...this.held.values()].filter(({ record }) => record.end)
    for (const [at, { record }] of old.entries()) {
      const { launchId, end } = record
      if (at >= old.length - keptEnded.count && Date.now() - end!.at < keptEnded.ms) continue
      this.held.delete(launchId)
      this.#touched.delete(launchId)
      void this.#options.records.remove(launchId).catch(() => {})
      void rm(this.#options.outputOf(launchId), { force: true }).catch(() => {})
    }
  }

  /** Tells listeners where something else is listed than before. */
  #announce(): void {
    const text = this.#listed()
      .map(one => [one.launchId, one.state, one.reason, one.node, one.endpoint?.origin, one.endsAt, one.isUnreachable])
      .join('\n')
    const isChanged = text !== this.#shown
    this.#shown = text
    if (isChanged) for (const listener of this.listeners) listener()
  }

  #lookIn(ms: number): void {
    clearTimeout(this.#timer)
    if (this.#closing.signal.aborted) return
    this.#timer = setTimeout(() => void this.#look(), ms)
    this.#timer.unref()
  }

  /** Lists, announces what has changed, and sees to it that it lists again while there is an engine. */
  async #look(): Promise<void> {
    try {
      await this.list(this.#closing.signal)
      this.#announce()
    } catch {
      // Whoever lists next is told why.
    }
    const live = [...this.held.values()].filter(({ record }) => !record.end)
    if (live.length === 0) return
    const moving = live.filter(({ isEnding, record }) => isEnding || !this.#controls.has(record.launchId))
    const now = performance.now()
    const isSoon = moving.some(({ record }) => now - (this.#touched.get(record.launchId) ?? -soonMs) < soonMs)
    this.#lookIn(isSoon ? lookMs.soon : moving.length > 0 ? lookMs.waiting : lookMs.steady)
  }

  /** Lets go of the wrappers, and lists no more by itself. */
  close(): void {
    this.#closing.abort()
    clearTimeout(this.#timer)
    this.#controls.close()
  }
}
