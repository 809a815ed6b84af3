import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { Failure } from '../../failure.ts'
import type { Log } from '../../log.ts'
import { pathsIn } from './directory.ts'
import type { Reader } from './reader.ts'
import { whileUnlocked } from './result-lock.ts'
import { isResultName, resultPlace } from './result-rows.ts'
import type { WriterThread } from './writer-thread.ts'

const everyMs = 60_000
const batch = 200

interface ResultSweepOptions {
  dataDir: string
  reader: Pick<Reader, 'results'>
  writer: Pick<WriterThread, 'ask'>
  log: Log
}

/**
 * Erases the files of results whose jobs have been forgotten: first the row, then the file, then the note that it is to
 * be erased, so that every step may be broken off. What lies there at the start without a row is what a crash left
 * between a file and its commit; it is told by the names that were there before anything could be written.
 */
export async function openResultSweep({ dataDir, reader, writer, log }: ResultSweepOptions) {
  const { results: folder } = pathsIn(dataDir)
  let before = await filesIn(folder)
  const closed = new AbortController()
  let again = false
  let running: Promise<void> | undefined

  /** False: somebody is making a copy. The next look is in a minute. */
  async function erase(files: readonly string[]): Promise<boolean> {
    return whileUnlocked(dataDir, async () => {
      for (const file of files) await rm(resultPlace(folder, file), { force: true })
    })
  }

  async function forgotten(): Promise<void> {
    while (!closed.signal.aborted) {
      const files = reader.results.erasable(batch)
      if (files.length === 0 || !(await erase(files))) return
      await writer.ask('results.erased', files)
    }
  }

  async function sweepAfterCrash(): Promise<void> {
    let swept = 0
    while (!closed.signal.aborted && before.length > 0) {
      const some = before.slice(0, batch)
      const orphans = some.filter(file => !reader.results.named(file))
      if (orphans.length > 0 && !(await erase(orphans))) break
      before = before.slice(some.length)
      swept += orphans.length
      await turn()
    }
    if (swept > 0) log.info('Results that no job has were removed', { files: swept })
  }

  async function run(): Promise<void> {
    try {
      await forgotten()
      await sweepAfterCrash()
    } catch (thrown) {
      // What was not done is found again next time.
      if (!closed.signal.aborted && Failure.from(thrown).code !== 'shutting_down')
        log.warn('Results that are not wanted any more could not all be removed', {}, thrown)
    }
  }

  function look(): void {
    again = true
    running ??= (async () => {
      while (again && !closed.signal.aborted) {
        again = false
        await run()
      }
      running = undefined
    })()
  }

  const timer = setInterval(look, everyMs).unref()
  look()

  return {
    /** Looks soon for what may be erased. */
    look,
    async close(): Promise<void> {
      closed.abort()
      clearInterval(timer)
      await running
    },
  }
}
export type ResultSweep = Awaited<ReturnType<typeof openResultSweep>>

/** Every file there, by the name that a row would have. */
async function filesIn(folder: string): Promise<string[]> {
  const files: string[] = []
  for (const organization of await readdir(folder, { withFileTypes: true }))
    if (organization.isDirectory())
      for (const name of await readdir(join(folder, organization.name))) files.push(`${organization.name}/${name}`)
  return files.filter(isResultName)
}
