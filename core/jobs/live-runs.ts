import type { JobRecord, LogLine, RowKey, Store } from '../store/store.ts'
import type { Preview, RunReport } from '../tasks/run-job.ts'

const maxLine = 4_096

/** Keeps the newest lines of one run, limited in number and in total characters. */
function openLogRing({ lines: maxLines = 200, characters = 65_536 } = {}) {
  const kept: LogLine[] = []
  let held = 0
  let dropped = 0

  return {
    add({ at, level, message }: LogLine): void {
      const text = message.length > maxLine ? `${message.slice(0, maxLine - 1)}…` : message
      kept.push({ at, level, message: text })
      held += text.length
      while (kept.length > maxLines || held > characters) {
        held -= kept.shift()!.message.length
        dropped++
      }
    },
    /** Oldest first. If lines were dropped, the first line says how many. */
    lines(): LogLine[] {
      const [first] = kept
      if (dropped === 0 || !first) return [...kept]
      const message = `${dropped} earlier ${dropped === 1 ? 'line was' : 'lines were'} not kept.`
      return [{ at: first.at, level: 'WARN', message }, ...kept]
    },
  }
}

type Listener = () => void

/** A current run with its reports. Lost with the process; its log is stored when the attempt ends. */
export interface LiveRun {
  readonly report: RunReport
  /** 0 to 1; null until the run reports any. */
  readonly progress: number | null
  readonly ranMs: number
  /** The unfinished images that the run has reported, oldest first. */
  readonly previews: readonly Preview[]
  lines(): LogLine[]
}

/** Maximum bytes of the previews that a run keeps; later ones are dropped. */
const maxPreviewBytes = 8 << 20

/**
 * The reports of current runs, and their followers. A follower is notified that something has changed, at most once per
 * event loop turn, however much has changed.
 */
export function openLiveRuns({ now, failed }: { now: () => number; failed: (thrown: unknown) => void }) {
  const runs = new Map<string, LiveRun>()
  const jobs = new Map<string, Set<Listener>>()
  const organizations = new Map<string, Set<Listener>>()
  const changed = new Set<Listener>()
  let notifying: NodeJS.Immediate | undefined

  function notify(listeners: Iterable<Listener> | undefined): void {
    if (!listeners) return
    for (const listener of listeners) changed.add(listener)
    if (changed.size > 0)
      notifying ??= setImmediate(() => {
        notifying = undefined
        const notified = [...changed]
        changed.clear()
        for (const listener of notified)
          try {
            listener()
          } catch (thrown) {
            failed(thrown)
          }
      })
  }

  const following = (all: Map<string, Set<Listener>>) => (id: string, listener: Listener) => {
    const listeners = all.get(id) ?? new Set()
    all.set(id, listeners)
    let active = true
    const own = () => {
      if (active) listener()
    }
    listeners.add(own)
    return () => {
      active = false
      listeners.delete(own)
      changed.delete(own)
      if (listeners.size === 0 && all.get(id) === listeners) all.delete(id)
    }
  }

  return {
    follow: following(jobs),
    followOrganization: following(organizations),

    /** Notifies the followers that the state of the job has changed. */
    moved({ id, organizationId }: RowKey): void {
      notify(jobs.get(id))
      notify(organizations.get(organizationId))
    },

    /** Notifies all followers: the jobs may have changed in another server. */
    movedElsewhere(): void {
      for (const listeners of [...jobs.values(), ...organizations.values()]) notify(listeners)
    },

    begin({ id }: RowKey): LiveRun {
      const ring = openLogRing()
      const since = performance.now()
      let progress: number | null = null
      const previews: Preview[] = []
      let previewBytes = 0
      const run: LiveRun = {
        report: {
          progress(fraction) {
            if (!(fraction > (progress ?? -1))) return
            progress = Math.min(1, fraction)
            notify(jobs.get(id))
          },
          log(level, message) {
            ring.add({ at: now(), level, message })
            notify(jobs.get(id))
          },
          preview(preview) {
            if (previewBytes + preview.bytes.length > maxPreviewBytes) return
            previewBytes += preview.bytes.length
            previews.push(preview)
            notify(jobs.get(id))
          },
        },
        previews,
        get progress() {
          return progress
        },
        get ranMs() {
          return performance.now() - since
        },
        lines: () => ring.lines(),
      }
      runs.set(id, run)
      return run
    },

    find: (id: string): LiveRun | undefined => runs.get(id),

    end(id: string, run: LiveRun): void {
      if (runs.get(id) === run) runs.delete(id)
    },
  }
}
export type LiveRuns = ReturnType<typeof openLiveRuns>

/** The log lines of a job's runs, oldest first: the stored ones, and those of the current run. */
export async function allLines(
  { organizationId, id }: Pick<JobRecord, 'organizationId' | 'id'>,
  { store, live }: { store: Pick<Store['jobs'], 'logs'>; live: Pick<LiveRuns, 'find'> },
): Promise<LogLine[]> {
  const stored = async () => JSON.parse(await store.logs(organizationId, id)) as LogLine[]
  const run = live.find(id)
  const previous = await stored()
  // The run may have ended during the read, and its lines may be stored now.
  if (live.find(id) !== run) return stored()
  const current = run?.lines() ?? []
  const [first] = current
  // The end of the run is committed but not announced yet, so its lines are stored already.
  const known = first && previous.some(({ at, message }) => at === first.at && message === first.message)
  return known ? previous : [...previous, ...current]
}
