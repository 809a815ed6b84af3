import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { readdir, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { setTimeout as delay, setImmediate as nextTurn } from 'node:timers/promises'
import { openDueWork } from '../../due-work.ts'
import { Failure } from '../../failure.ts'
import { ulid } from '../../ids.ts'
import type { Log } from '../../log.ts'
import { StoreRefusal } from '../refusal.ts'
import { largeResultBytes } from '../store.ts'
import { type Connection, openAsIs, openLockFile, sqliteCode } from './database.ts'
import { linkOrCopy, pathsIn, syncNow } from './directory.ts'
import type { Reader } from './reader.ts'
import { isResultName, resultPath } from './results.ts'
import type { WriterThread } from './writer-thread.ts'

const everyMs = 60_000
const batch = 200

interface ResultSweepOptions {
  dataDir: string
  reader: Pick<Reader, 'results'>
  writer: Pick<WriterThread, 'send'>
  log: Log
  /** Whether to search for files without a row. */
  afterCrash: boolean
}

/**
 * Erases the files of results whose jobs were removed: first the row, then the file, then the reminder to erase it, so
 * that every step may be interrupted. A crash may leave a file without a row; such files are found at the start, among
 * the names listed before anything can be written.
 */
export async function openResultSweep({ dataDir, reader, writer, log, afterCrash }: ResultSweepOptions) {
  const { results: folder } = pathsIn(dataDir)
  let startupFiles = afterCrash ? (await readdir(folder, { recursive: true })).filter(isResultName) : []
  const closed = new AbortController()
  const runs = openDueWork({ work: run })
  /** Files that could not be erased: passed over until the next start, so that they hold up no others. */
  const unerasable = new Set<string>()

  /** False: a copy is being made. The next attempt is in a minute. */
  async function erase(files: readonly string[]): Promise<boolean> {
    return whileUnlocked(dataDir, async () => {
      for (const file of files)
        try {
          await rm(resultPath(folder, file), { force: true })
        } catch (cause) {
          unerasable.add(file)
          log.warn('An unused result could not be removed', { file }, cause)
        }
    })
  }

  async function eraseResultsOfRemovedJobs(): Promise<void> {
    while (!closed.signal.aborted) {
      const files = reader.results.erasable(batch + unerasable.size).filter(file => !unerasable.has(file))
      if (files.length === 0 || !(await erase(files))) return
      await writer.send('eraseResults', [files.filter(file => !unerasable.has(file))])
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

  const timer = setInterval(() => void runs.check(), everyMs).unref()
  void runs.check()

  return {
    /** Erases soon what can be erased. */
    schedule: () => void runs.check(),
    close(): Promise<void> {
      closed.abort()
      clearInterval(timer)
      return runs.close()
    },
  }
}
export type ResultSweep = Awaited<ReturnType<typeof openResultSweep>>

/** The eraser holds the lock only while it unlinks some files. */
const maxWaitMs = 10_000

/**
 * Prevents every process from erasing result files until released: files named by a database that is read after this
 * call exist. For copies and checks. Ends with the process. Rejects with StoreRefusal.
 */
export async function holdResults(dataDir: string): Promise<Disposable> {
  const { resultsLock } = pathsIn(dataDir)
  // No server that erases results has ever run there.
  if (!existsSync(resultsLock)) return { [Symbol.dispose]: () => {} }
  const until = performance.now() + maxWaitMs
  for (;;) {
    let held: Connection | undefined
    try {
      held = openLockFile(resultsLock, 0)
      held.exec('BEGIN')
      held.statement`SELECT count(*) FROM sqlite_schema`.get()
      return held
    } catch (cause) {
      held?.close()
      // Not waited for inside SQLite: the holder may be a task of this same thread.
      if (!isBusy(cause) || performance.now() > until)
        throw new StoreRefusal(74, `The results in ${dataDir} cannot be locked: ${(cause as Error).message}.`, cause)
    }
    await delay(20)
  }
}

const isBusy = (thrown: unknown): boolean => sqliteCode(thrown)?.startsWith('SQLITE_BUSY') === true

/** Runs `erase` while no other process holds the results. False: the results are held, and nothing was done. */
async function whileUnlocked(dataDir: string, erase: () => Promise<void>): Promise<boolean> {
  using lock = openLockFile(pathsIn(dataDir).resultsLock, 0)
  try {
    lock.exec('BEGIN EXCLUSIVE')
    await erase()
    return true
  } catch (thrown) {
    if (!isBusy(thrown)) throw thrown
    return false
  }
}

interface Named {
  number: number
  file: string
  bytes: number
}

const namedIn = (connection: Connection): Named[] =>
  connection.query<Named>`SELECT number, file, bytes FROM job_results WHERE file IS NOT NULL`.all()

/** Whether the file of a result exists with its full size. */
function isWhole(folder: string, { file, bytes }: Named): boolean {
  return isResultName(file) && statSync(resultPath(folder, file), { throwIfNoEntry: false })?.size === bytes
}

/** How many results that a database names are missing. Blocks the thread. */
export const missingResults = (connection: Connection, folder: string): number =>
  namedIn(connection).filter(row => !isWhole(folder, row)).length

/** How many bytes of results are in files. */
export const bytesOfResults = (connection: Connection): number =>
  connection.scalar<number>`SELECT coalesce(sum(bytes), 0) FROM job_results`.get()!

/**
 * Moves the results that are in files into the rows of a copy of the database, so that the copy is complete in one
 * file. Returns how many are missing; their rows stay as they are. The copy is not durable yet: a crash loses it, which
 * is fine because it does not have its final name. Blocks the thread. `onCopied` gets bytes.
 */
export function importResultFiles(path: string, folder: string, onCopied: (bytes: number) => void = () => {}): number {
  using copy = openAsIs(path)
  copy.pragma('journal_mode = MEMORY')
  copy.pragma('synchronous = OFF')
  // The bytes are UTF-8 already: a JavaScript string would be decoded and encoded again.
  const importText = copy.statement`UPDATE job_results SET result = CAST(? AS TEXT), file = NULL, bytes = NULL
    WHERE number = ?`
  let missing = 0
  copy.exec('BEGIN')
  for (const row of namedIn(copy)) {
    if (isWhole(folder, row)) importText.run(readFileSync(resultPath(folder, row.file)), row.number)
    else missing++
    onCopied(row.bytes)
  }
  copy.exec('DELETE FROM erasable_results; COMMIT')
  return missing
}

/**
 * The opposite of `importResultFiles`: writes the large results of a database that is to be served to files in
 * `folder`, durably. Results that are in files already are searched for in the folders `beside`. Returns how many were
 * not found.
 */
export function exportResultFiles(connection: Connection, folder: string, beside: readonly string[]): number {
  const touched = new Set([folder])
  const write = (file: string, make: (to: string) => void) => {
    const to = resultPath(folder, file)
    mkdirSync(dirname(to), { recursive: true, mode: 0o700 })
    make(to)
    syncNow(to)
    touched.add(dirname(to))
  }
  let missing = 0
  for (const row of namedIn(connection)) {
    if (isWhole(folder, row)) continue
    const from = beside.find(other => isWhole(other, row))
    if (from === undefined) missing++
    else write(row.file, to => copyFileSync(resultPath(from, row.file), to))
  }
  const large = connection.query<{
    number: number
    organization_id: string
    id: string
  }>`SELECT number, organization_id, id FROM job_results
    JOIN jobs USING (number) WHERE octet_length(result) > ?`.all(largeResultBytes)
  const textOf = connection.scalar<Buffer>`SELECT CAST(result AS BLOB) FROM job_results WHERE number = ?`
  const name = connection.statement`UPDATE job_results SET result = NULL, file = ?, bytes = ? WHERE number = ?`
  for (const { number, organization_id, id } of large) {
    const bytes = textOf.get(number)!
    const file = `${organization_id}/${id}.${ulid()}.json`
    write(file, to => writeFileSync(to, bytes, { flag: 'wx', mode: 0o600 }))
    name.run(file, bytes.byteLength, number)
  }
  for (const one of touched) syncNow(one)
  return missing
}

/** The names of all result files, as a row would name them. Blocks the thread. */
export const resultsIn = (folder: string): string[] =>
  existsSync(folder) ? readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter(isResultName) : []

/** Links result files into another folder: they stay there when the originals are erased. */
export function keepResultsBeside(folder: string, files: readonly string[], beside: string): void {
  for (const file of files) {
    const [from, to] = [resultPath(folder, file), resultPath(beside, file)]
    mkdirSync(dirname(to), { recursive: true, mode: 0o700 })
    linkOrCopy(from, to)
  }
}
