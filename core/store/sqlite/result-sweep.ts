import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { Failure } from '../../failure.ts'
import type { Log } from '../../log.ts'
import { pathsIn } from './directory.ts'
import type { Reader } from './reader.ts'
import { whileUnlocked } from './result-lock.ts'
import { isResultName, resultPath } from './result-rows.ts'
import type { WriterThread } from './writer-thread.ts'

const everyMs = 60_000
const batch = 200

interface ResultSweepOptions {
  dataDir: string
  reader: Pick<Reader, 'results'>
  writer: Pick<WriterThread, 'send'>
  log: Log
}

/**
 * Erases the files of results whose jobs were removed: first the row, then the file, then the reminder to erase it, so
 * that every step may be interrupted. A crash may leave a file without a row; such files are found at the start, among
 * the names listed before anything can be written.
 */
export async function openResultSweep({ dataDir, reader, writer, log }: ResultSweepOptions) {
  const { results: folder } = pathsIn(dataDir)
  let startupFiles = await filesIn(folder)
  const closed = new AbortController()
  let pending = false
  let running: Promise<void> | undefined

  /** False: a copy is being made. The next attempt is in a minute. */
  async function erase(files: readonly string[]): Promise<boolean> {
    return whileUnlocked(dataDir, async () => {
      for (const file of files) await rm(resultPath(folder, file), { force: true })
    })
  }

  async function eraseResultsOfRemovedJobs(): Promise<void> {
    while (!closed.signal.aborted) {
      const files = reader.results.erasable(batch)
      if (files.length === 0 || !(await erase(files))) return
      await writer.send('eraseResults', [files])
    }
  }

  async function sweepAfterCrash(): Promise<void> {
    let swept = 0
    while (!closed.signal.aborted && startupFiles.length > 0) {
      const some = startupFiles.slice(0, batch)
      const orphans = some.filter(file => !reader.results.named(file))
      if (orphans.length > 0 && !(await erase(orphans))) break
      startupFiles = startupFiles.slice(some.length)
      swept += orphans.length
      await nextTurn()
    }
    if (swept > 0) log.info('Removed results that belong to no job', { files: swept })
  }

  async function run(): Promise<void> {
    try {
      await eraseResultsOfRemovedJobs()
      await sweepAfterCrash()
    } catch (thrown) {
      // The next run finds what was not done.
      if (!closed.signal.aborted && Failure.from(thrown).code !== 'shutting_down')
        log.warn('Some unused results could not be removed', {}, thrown)
    }
  }

  function schedule(): void {
    pending = true
    running ??= (async () => {
      while (pending && !closed.signal.aborted) {
        pending = false
        await run()
      }
      running = undefined
    })()
  }

  const timer = setInterval(schedule, everyMs).unref()
  schedule()

  return {
    /** Erases soon what can be erased. */
    schedule,
    async close(): Promise<void> {
      closed.abort()
      clearInterval(timer)
      await running
    },
  }
}
export type ResultSweep = Awaited<ReturnType<typeof openResultSweep>>

/** The names of all files there, as a row would name them. */
async function filesIn(folder: string): Promise<string[]> {
  const files: string[] = []
  for (const organization of await readdir(folder, { withFileTypes: true }))
    if (organization.isDirectory())
      for (const name of await readdir(join(folder, organization.name))) files.push(`${organization.name}/${name}`)
  return files.filter(isResultName)
}
