import { mkdir, open, readFile, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { Failure } from '../../failure.ts'
import { ulid } from '../../ids.ts'
import { type LargeResult, resultExpired } from '../large-result.ts'
import { type JobClaim, type JobOutcome, largeResultBytes } from '../store.ts'
import type { Connection } from './database.ts'
import { pathsIn } from './directory.ts'
import { diskFull, received } from './sent-failure.ts'

type Completed = Extract<JobOutcome, { status: 'completed' }>
/** A result as the writer gets it. */
type WrittenResult = string | { file: string; bytes: number }
export type WrittenOutcome = Exclude<JobOutcome, Completed> | (Omit<Completed, 'result'> & { result: WrittenResult })

/**
 * Writes large results to their own files, `<data dir>/results/<organization>/<job>.<ulid>.json`, before the commit
 * that names them: neither the event loop nor the writer handles megabytes, and a row never names a missing file.
 */
export function openResultWriter({ folder, onFull }: { folder: string; onFull: () => void }) {
  const prepared = new Map<string, Promise<string>>()

  /** The folder of an organization, created durably; concurrent callers share the creation. */
  function folderOf(organizationId: string): Promise<string> {
    const before = prepared.get(organizationId)
    if (before) return before
    const made = makeFolder(folder, organizationId)
    prepared.set(organizationId, made)
    made.catch(() => prepared.delete(organizationId))
    return made
  }

  async function write({ organizationId, id }: JobClaim, bytes: Uint8Array): Promise<{ file: string; bytes: number }> {
    const file = `${organizationId}/${id}.${ulid()}.json`
    const path = resultPath(folder, file)
    try {
      const within = await folderOf(organizationId)
      await writeWhole(path, bytes)
      await syncFolder(within)
    } catch (thrown) {
      await rm(path, { force: true })
      if (!isFull(thrown)) throw thrown
      onFull()
      throw received(diskFull)
    }
    return { file, bytes: bytes.byteLength }
  }

  async function discard({ file }: { file: string }): Promise<void> {
    // A file that cannot be removed now is swept at the next start.
    await rm(resultPath(folder, file), { force: true }).catch(() => {})
  }

  return {
    /**
     * Ends an attempt by `settle`, which gets the outcome with its result stored and resolves with whether it was
     * accepted. The file of a result that was not accepted is removed. Rejects as `settle` does, and with Failure
     * `disk_full`.
     */
    async settling(
      claim: JobClaim,
      outcome: JobOutcome,
      settle: (outcome: WrittenOutcome) => Promise<boolean>,
    ): Promise<boolean> {
      if (outcome.status !== 'completed') return settle(outcome)
      const { result } = outcome
      const large = largeOf(result)
      if (!large)
        return settle(typeof result === 'string' ? (outcome as WrittenOutcome) : { ...outcome, result: textOf(result) })
      const written = await write(claim, large)
      let settled = false
      try {
        settled = await settle({ ...outcome, result: written })
      } catch (thrown) {
        // A failing store may or may not have committed it: the next start sweeps the file if not.
        if (Failure.from(thrown).code !== 'shutting_down') await discard(written)
        throw thrown
      }
      if (!settled) await discard(written)
      return settled
    },
  }
}
export type ResultWriter = ReturnType<typeof openResultWriter>

/** The bytes of a result that is too large for a row. Runs pass large results as bytes, so that nothing is copied. */
function largeOf(result: string | Uint8Array): Uint8Array | undefined {
  if (typeof result !== 'string') return result.byteLength > largeResultBytes ? result : undefined
  // UTF-8 needs at most three bytes for each UTF-16 code unit.
  if (result.length * 3 <= largeResultBytes) return undefined
  const bytes = Buffer.from(result)
  return bytes.byteLength > largeResultBytes ? bytes : undefined
}

const textOf = ({ buffer, byteOffset, byteLength }: Uint8Array): string =>
  Buffer.from(buffer, byteOffset, byteLength).toString('utf8')

async function writeWhole(path: string, bytes: Uint8Array): Promise<void> {
  await using file = await open(path, 'wx', 0o600)
  for (let at = 0; at < bytes.byteLength; ) at += (await file.write(bytes, at)).bytesWritten
  await file.sync()
}

async function makeFolder(parent: string, name: string): Promise<string> {
  const folder = join(parent, name)
  await mkdir(folder, { recursive: true, mode: 0o700 })
  await syncFolder(parent)
  return folder
}

/** Makes new files in the folder survive a power loss. */
async function syncFolder(path: string): Promise<void> {
  await using folder = await open(path, 'r')
  await folder.sync()
}

const isFull = (thrown: unknown): boolean =>
  ['ENOSPC', 'EDQUOT'].includes((thrown as NodeJS.ErrnoException | undefined)?.code ?? '')

/** The columns of a result: its text, or the name and size of its file. */
export interface ResultRow {
  result: string | null
  file: string | null
  bytes: number | null
}

const form = /^[\w-]+\/[\w-]+(\.[\w-]+)*\.json$/

export const isResultName = (file: string): boolean => form.test(file)

/**
 * The path of a result's file. Throws for a name that infer would not create: the row may come from a restored
 * database.
 */
export function resultPath(folder: string, file: string): string {
  if (!isResultName(file)) throw new Error(`a result has the name '${file}', which was not created by infer`)
  return join(folder, file)
}

/** Inserts the result of a job by its number: its text, or the name and size of its file. */
export function openResultRows(connection: Connection) {
  const insertText = connection.statement`INSERT INTO job_results (number, result) VALUES (?, ?)`
  const insertFile = connection.statement`INSERT INTO job_results (number, file, bytes) VALUES (?, ?, ?)`
  return (job: number, result: WrittenResult): void =>
    void (typeof result === 'string' ? insertText.run(job, result) : insertFile.run(job, result.file, result.bytes))
}

/** Converts a row to a result: the text if it is short, otherwise a handle. */
export function openResultOf(connection: Connection) {
  const folder = pathsIn(dirname(connection.name)).results
  return ({ result, file, bytes }: ResultRow): string | LargeResult | null =>
    file === null || bytes === null ? result : largeResultFile(resultPath(folder, file), bytes)
}

/** The writer's commands for result files. */
export function resultCommands(connection: Connection) {
  const erased = connection.statement`DELETE FROM erasable_results WHERE file = ?`
  return {
    /** Records that these files were erased. */
    eraseResults(files: readonly string[]): void {
      for (const file of files) erased.run(file)
    },
  }
}

/** Reads of result files; short statements on a read-only connection. */
export function resultReads(connection: Connection) {
  const erasable = connection.scalar<string>`SELECT file FROM erasable_results LIMIT ?`
  const named = connection.scalar<number>`SELECT 1 FROM job_results WHERE file = ?`
  return {
    /** Files whose jobs were removed. */
    erasable: (limit: number): string[] => erasable.all(limit),
    /** Whether a job has its result in this file. */
    named: (file: string): boolean => named.get(file) !== undefined,
  }
}

/** A large result in a file of the data directory. */
const largeResultFile = (path: string, bytes: number): LargeResult => ({
  bytes,
  async check() {
    const { size } = await stat(path).catch(expire)
    if (size !== bytes) throw new Error(`${path} has ${size} bytes instead of ${bytes}`)
  },
  text: () => readFile(path, 'utf8').catch(expire),
  open: () => open(path).catch(expire),
  localFile: async () => ({ path, async [Symbol.asyncDispose]() {} }),
})

function expire(cause: NodeJS.ErrnoException): never {
  throw cause.code === 'ENOENT' ? resultExpired() : cause
}
