import { mkdirSync } from 'node:fs'
import { rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Log } from '../../core/log.ts'
import { optionalJson, optionalNames } from '../../core/optional-file.ts'
import type { LaunchKey } from './launch-key.ts'

/** What this server must know of a launch in a cluster, also after a restart. Plain data. */
export interface LaunchRecord extends LaunchKey {
  version: 1
  launchId: string
  engineId: string
  modelId: string
  secrets: readonly string[]
  note: unknown
  /** How it has ended, and when, in epoch milliseconds; null until that is known. */
  end: { status: string | null; reason: string | null; at: number } | null
}

/**
 * Keeps the records of the launches of a pool, a file each, which only its owner may read: they have the keys. Only this server
 * reads them; nodes do not.
 */
export function openRecords<Record extends LaunchRecord>(folder: string, log: Log) {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  /** The last write of each launch. */
  const writes = new Map<string, Promise<void>>()
  const fileOf = (launchId: string) => join(folder, `${launchId}.json`)

  function after(launchId: string, act: () => Promise<void>): Promise<void> {
    const done = (writes.get(launchId) ?? Promise.resolve()).catch(() => {}).then(act)
    const settled = done
      .catch((thrown: unknown) =>
        log.warn('Cannot write the record of an engine', { launch: launchId }, thrown as Error),
      )
      .finally(() => {
        if (writes.get(launchId) === settled) writes.delete(launchId)
      })
    writes.set(launchId, settled)
    return done
  }

  return {
    /** Those of earlier runs of this server. */
    all: (): Record[] =>
      optionalNames(folder)
        .filter(name => name.endsWith('.json'))
        .map(name => optionalJson(join(folder, name)) as Partial<Record> | undefined)
        .filter((record): record is Record => record?.version === 1 && typeof record.launchId === 'string'),
    /** Writes a record as it is now. Rejects if it cannot be written. */
    write(record: Record): Promise<void> {
      const text = JSON.stringify(record)
      const to = fileOf(record.launchId)
      return after(record.launchId, async () => {
        await writeFile(`${to}.part`, text, { mode: 0o600, flush: true })
        await rename(`${to}.part`, to)
      })
    },
    /** Keeps a note with a launch that has not ended; undefined: there is none. */
    note(record: Record | undefined, note: unknown): void {
      if (!record || record.end) return
      record.note = note
      void this.write(record).catch(() => {})
    },
    remove: (launchId: string): Promise<void> => after(launchId, () => rm(fileOf(launchId), { force: true })),
    /** Resolves when everything was written. */
    async written(): Promise<void> {
      while (writes.size > 0) await Promise.all(writes.values())
    },
  }
}
