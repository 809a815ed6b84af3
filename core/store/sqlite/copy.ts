import { existsSync, renameSync, rmSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { StoreRefusal } from '../refusal.ts'
import { openAsIs, openDatabase, sqliteCode } from './database.ts'
import { createPrivate, pathsIn, syncNow } from './directory.ts'
import { brokenLinks } from './ledger.ts'
import { refuseForeign } from './migrations.ts'
import { bytesOfResults, holdResults, importResultFiles } from './result-files.ts'
import { startThread, type ThreadStart } from './thread.ts'

export type FromCopy =
  | { kind: 'progress'; done: number; total: number }
  | { kind: 'copied'; bytes: number }
  | { kind: 'refused'; exitCode: 64 | 65 | 74; message: string }

/** One megabyte per step takes about 3 ms, so that a thread with other work stays responsive. */
const pagesPerStep = 256

/**
 * Copies a database that is in use, large results included, to a new file (mode 0600): a consistent snapshot, verified,
 * and renamed to its final name only when complete. Writers continue meanwhile. `onProgress` gets pages. Throws
 * StoreRefusal.
 */
export async function copyDatabase(
  from: string,
  to: string,
  onProgress: (done: number, total: number) => void = () => {},
): Promise<{ bytes: number }> {
  if (existsSync(to)) throw new StoreRefusal(64, `The file ${to} exists already. Choose another name for the backup.`)
  const partial = `${resolve(to)}.partial`
  try {
    // Before the snapshot: no result that it names is erased while it is copied.
    using _held = await holdResults(dirname(from))
    rmSync(partial, { force: true })
    createPrivate(partial)
    const copied = await copyPages(from, partial, onProgress)
    makeSingleFile(partial)
    includeResults(partial, { from, to, onCopied: pages => onProgress(copied.pages + pages, copied.total) })
    verifyCopy(partial, {
      file: from,
      sentence: finding =>
        `The backup to ${to} was not made, because the database is damaged: ${finding}. Check it with: infer db check`,
    })
    syncNow(partial)
    renameSync(partial, to)
    syncNow(dirname(resolve(to)))
    return { bytes: statSync(to).size }
  } catch (thrown) {
    rmSync(partial, { force: true })
    if (thrown instanceof StoreRefusal) throw thrown
    const exitCode = /^SQLITE_(CORRUPT|NOTADB)/.test(sqliteCode(thrown) ?? '') ? 65 : 74
    throw new StoreRefusal(exitCode, `The backup to ${to} was not made: ${(thrown as Error).message}.`, thrown)
  }
}

/** Adds the large results, which are in files, so that the copy is complete. */
function includeResults(
  partial: string,
  { from, to, onCopied }: { from: string; to: string; onCopied: (pages: number) => void },
): void {
  let bytes = 0
  const missing = importResultFiles(partial, pathsIn(dirname(from)).results, more => onCopied(pagesOf((bytes += more))))
  if (missing > 0)
    throw new StoreRefusal(
      65,
      `The backup to ${to} was not made, because ${missing} results of jobs are missing. Check it with: infer db check`,
    )
}

const pagesOf = (bytes: number): number => Math.ceil(bytes / 4096)

/** Resolves with the number of pages copied, and the number including the results. */
async function copyPages(
  from: string,
  to: string,
  onProgress: (done: number, total: number) => void,
): Promise<{ pages: number; total: number }> {
  using source = openDatabase(from, { readonly: true })
  // One read transaction around all steps: without it, every commit of another connection restarts the copy, and
  // beside a busy server it would never end.
  source.exec('BEGIN')
  const results = pagesOf(bytesOfResults(source))
  let pages = 0
  await source.backup(to, {
    progress({ totalPages, remainingPages }) {
      pages = totalPages
      onProgress(totalPages - remainingPages, totalPages + results)
      return pagesPerStep
    },
  })
  return { pages, total: pages + results }
}

/** Leaves WAL mode, so that the copy is complete in one file wherever it is moved. */
function makeSingleFile(path: string): void {
  using copy = openAsIs(path)
  copy.pragma('journal_mode = DELETE')
}

/**
 * Throws StoreRefusal (65) unless the file is a valid infer database with an unbroken ledger and a known schema. The
 * message names `file`, because the path that is checked may mean nothing to the reader.
 */
export function verifyCopy(
  path: string,
  {
    file = path,
    sentence = finding => `The backup ${file} is not usable: ${finding}. Use another backup.`,
  }: { file?: string; sentence?: (finding: string) => string } = {},
): void {
  let finding: string | undefined
  try {
    using copy = openAsIs(path, { readonly: true })
    refuseForeign(copy, file)
    const [checked] = copy.pragma('integrity_check(1)') as { integrity_check: string }[]
    if (checked?.integrity_check !== 'ok') finding = checked?.integrity_check ?? 'it cannot be checked'
    else [finding] = brokenLinks(copy, undefined, 1)
  } catch (thrown) {
    if (thrown instanceof StoreRefusal) throw thrown
    finding = (thrown as Error).message
  }
  if (finding !== undefined) throw new StoreRefusal(65, sentence(finding.split('\n')[0]!.replace(/\.$/, '')))
}

/**
 * Runs `copyDatabase` in its own thread: neither the event loop nor the writer waits for its reads, writes and final
 * fsync. Rejects with StoreRefusal.
 */
export function copyInThread(
  from: string,
  to: string,
  onProgress: (done: number, total: number) => void = () => {},
): Promise<{ bytes: number }> {
  return new Promise((resolve, reject) => {
    const thread = startThread('store-copy')
    thread.ref()
    thread.postMessage({ role: 'copy', from, to } satisfies ThreadStart, [])
    thread
      .on('message', (message: FromCopy) => {
        if (message.kind === 'progress') onProgress(message.done, message.total)
        else if (message.kind === 'copied') resolve({ bytes: message.bytes })
        else reject(new StoreRefusal(message.exitCode, message.message))
      })
      .on('error', thrown => reject(new StoreRefusal(74, `The backup to ${to} failed: ${String(thrown)}.`, thrown)))
      .on('exit', () => reject(new StoreRefusal(74, `The backup to ${to} was not finished.`)))
  })
}
