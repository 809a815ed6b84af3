import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { type ProcessIdentity, processesWith, signal } from './processes.ts'

/** One launch as it is remembered on disk, from before its process exists until it is known to be gone. */
export interface LaunchRecord {
  launchId: string
  bootId: string
  modelId: string
  /** Null while it is being started. */
  process: ProcessIdentity | null
}

/**
 * The launches of this data directory, in a file that outlives us. Written before a process is started, so that there
 * is none that the file does not know. Not synced to disk: what a power cut takes from the file, it takes from the
 * process table too.
 */
export function openRecord(path: string) {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  const launches = new Map(read(path).map(launch => [launch.launchId, launch]))
  const write = () => {
    const next = `${path}.new`
    writeFileSync(next, JSON.stringify([...launches.values()]), { mode: 0o600 })
    renameSync(next, path)
  }
  return {
    all: (): LaunchRecord[] => [...launches.values()],
    put(launch: LaunchRecord): void {
      launches.set(launch.launchId, launch)
      write()
    },
    remove(...launchIds: string[]): void {
      if (launchIds.filter(id => launches.delete(id)).length > 0) write()
    },
  }
}

function read(path: string): LaunchRecord[] {
  try {
    const value = JSON.parse(readFileSync(path, 'utf8')) as LaunchRecord[]
    return Array.isArray(value) ? value.filter(launch => launch?.launchId && launch.bootId) : []
  } catch {
    return []
  }
}

export interface Sweep {
  /** How many processes of earlier boots were ended. */
  ended: number
  /** Those that did not go within the time: in the hands of the kernel or of a driver. */
  left: ProcessIdentity[]
}

/**
 * Ends what earlier boots of this data directory left behind. A process is one of theirs when its environment names a
 * launch that the record holds and the boot that launched it; it is killed only if its number still means the same
 * process. Grandchildren in sessions of their own are found too, for the environment is handed down.
 */
export async function sweep(record: ReturnType<typeof openRecord>, bootId: string, withinMs = 5_000): Promise<Sweep> {
  const earlier = record.all().filter(launch => launch.bootId !== bootId)
  if (earlier.length === 0) return { ended: 0, left: [] }
  const theirs = {
    INFER_BOOT_ID: new Set(earlier.map(launch => launch.bootId)),
    INFER_LAUNCH_ID: new Set(earlier.map(launch => launch.launchId)),
  }
  const left = await endAll(theirs, withinMs)
  if (left.left.length === 0) record.remove(...earlier.map(launch => launch.launchId))
  return left
}

/** Kills every process with these marks and waits until there is none. */
export async function endAll(marks: Record<string, ReadonlySet<string>>, withinMs: number): Promise<Sweep> {
  const ended = new Set<string>()
  const deadline = performance.now() + withinMs
  for (;;) {
    const found = await processesWith(marks)
    if (found.length === 0 || performance.now() > deadline) return { ended: ended.size, left: found }
    for (const one of found) {
      await signal(one, 'SIGKILL')
      ended.add(`${one.pid}/${one.startTime}`)
    }
    await pause(20)
  }
}
