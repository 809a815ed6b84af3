import { mkdir, open, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { Failure } from '../../core/failure.ts'
import type { Log } from '../../core/log.ts'
import { optionalJson } from '../../core/optional-file.ts'
import type { PauseRule } from './rules.ts'

const time = z.number().nullable()
const Rule = z.object({
  id: z.string(),
  devices: z.array(z.string()).nullable(),
  until: time,
  process: z.string().nullable(),
  schedule: z.object({ cron: z.string(), timezone: z.string(), forMs: z.number() }).nullable(),
  createdAt: z.number(),
  isConfigured: z.boolean(),
  resumed: z.record(z.string(), time),
})

/** Keeps pauses over restarts: `gpu-pauses.json` in the data directory. */
export function openStoredRules({ dataDir, log }: { dataDir: string; log: Pick<Log, 'warn'> }) {
  const path = join(dataDir, 'gpu-pauses.json')
  return {
    read(): PauseRule[] {
      const value = optionalJson(path)
      if (value === undefined) return []
      const read = z.array(Rule).safeParse(value)
      if (read.success) return read.data
      log.warn('The pauses of the devices cannot be read, so there are none', { path, reason: read.error.message })
      return []
    },
    /** Resolves when they would survive a loss of power. Throws Failure `disk_full`. */
    async write(rules: readonly PauseRule[]): Promise<void> {
      try {
        await mkdir(dataDir, { recursive: true })
        const file = await open(`${path}.new`, 'w', 0o600)
        try {
          await file.writeFile(JSON.stringify(rules))
          await file.sync()
        } finally {
          await file.close()
        }
        await rename(`${path}.new`, path)
      } catch (cause) {
        if ((cause as NodeJS.ErrnoException).code !== 'ENOSPC') throw cause
        throw new Failure('disk_full', `The pause cannot be stored: the disk of ${dataDir} is full.`, { cause })
      }
    },
  }
}
