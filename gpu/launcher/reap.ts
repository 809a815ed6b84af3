import { mkdirSync, renameSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { optionalJson } from '../../core/optional-file.ts'
import { type ProcessIdentity, processesWith, signal } from './processes.ts'

/** One launch as recorded on disk, from before its process exists until the process has exited. */
export interface LaunchRecord {
  launchId: string
  bootId: string
  modelId: string
  /** Null while it is being started. */
  process: ProcessIdentity | null
}

/**
 * Records the launches of this data directory in a file. An entry is written before its process is started, so every
 * process is in the file. The file is not synced: a power failure that loses an entry also ends its process.
 */
export function openRecord(path: string) {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  const launches = new Map(read(path).map(launch => [launch.launchId, launch]))
  let frozen = false
  const write = () => {
    if (frozen) return
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
    /** Writes nothing more: the file belongs to another server from now on. */
    freeze: (): void => void (frozen = true),
    remove(...launchIds: string[]): void {
      if (launchIds.filter(id => launches.delete(id)).length > 0) write()
    },
  }
}

function read(path: string): LaunchRecord[] {
  const value = optionalJson(path)
  return Array.isArray(value) ? (value as LaunchRecord[]).filter(launch => launch?.launchId && launch.bootId) : []
}

export interface Sweep {
  /** How many processes of earlier boots were ended. */
  ended: number
  /** Processes that did not exit in time, for example because they are blocked in the kernel or a driver. */
  left: ProcessIdentity[]
}

/**
 * Ends processes left by earlier boots of this data directory. They are recognized by the launch id and boot id in
 * their environment, and killed only if the process id still belongs to the same process. Grandchildren in other
 * sessions are found too, because they inherit the environment. The launches `kept` are spared, and those of `boots`: of this
 * boot, and of others whose servers still run.
 */
export async function sweep(
  record: ReturnType<typeof openRecord>,
  boots: readonly string[],
  kept: ReadonlySet<string> = new Set(),
  withinMs = 5_000,
): Promise<Sweep> {
  const earlier = record.all().filter(launch => !boots.includes(launch.bootId) && !kept.has(launch.launchId))
  if (earlier.length === 0) return { ended: 0, left: [] }
  const markers = {
    INFER_BOOT_ID: new Set(earlier.map(launch => launch.bootId)),
    INFER_LAUNCH_ID: new Set(earlier.map(launch => launch.launchId)),
  }
  const result = await endAll(markers, withinMs)
  if (result.left.length === 0) record.remove(...earlier.map(launch => launch.launchId))
  return result
}

/** Kills every process with these environment variables and waits until there is none, at most `withinMs`. */
export async function endAll(markers: Record<string, ReadonlySet<string>>, withinMs: number): Promise<Sweep> {
  const ended = new Set<string>()
  const deadline = performance.now() + withinMs
  for (;;) {
    const found = await processesWith(markers)
    if (found.length === 0 || performance.now() > deadline) return { ended: ended.size, left: found }
    for (const one of found) {
      await signal(one, 'SIGKILL')
      ended.add(`${one.pid}/${one.startTime}`)
    }
    await pause(20)
  }
}
