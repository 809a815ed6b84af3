import { createHash, type Hash } from 'node:crypto'
import { constants } from 'node:fs'
import { type FileHandle, open, rename, rm, stat, statfs } from 'node:fs/promises'
import { Failure, invalidValue } from '../../failure.ts'
import type { HubFile } from './choose.ts'
import { withLock } from './lock.ts'
import {
  type HubFetch,
  hubUnreachable,
  isTransient,
  RangeFailure,
  type RetryRules,
  retryDelayMs,
  waitBeforeRetry,
} from './requests.ts'

export interface Transfer {
  /** Name of the file in messages. */
  name: string
  url: string
  /** ETag of the expected version. The file on the server may have changed. */
  etag?: string | null
  /** Path of the partial file. The bytes of an earlier call are kept and the download is resumed. */
  incomplete: string
  size: number
  /** Null if the expected hash is not known. */
  hash: TransferHash | null
}

/** The hash of a file of a hub, or SHA-512, as in the registry of npm. */
type TransferHash = HubFile['hash'] | { kind: 'sha512'; hex: string }

export type TransferEvent = { file: string } & (
  | { event: 'resume' | 'progress'; bytes: number }
  | { event: 'retry'; reason: string; waitMs: number }
  /** Another process downloads the file now. */
  | { event: 'wait' }
)

export interface TransferTools {
  ask: HubFetch
  retryRules: RetryRules
  signal: AbortSignal
  onEvent: (event: TransferEvent) => void
}

/** Whether a file exists with this size. Files get their names after they are verified, so the size is enough. */
export const isComplete = async (path: string, size: number): Promise<boolean> =>
  (await stat(path).catch(() => null))?.size === size

/** Downloads a file to `path`. False if it was there, or another process has downloaded it meanwhile. */
export async function download(
  file: Transfer & { path: string; lock: string },
  tools: TransferTools,
): Promise<boolean> {
  const { signal, onEvent } = tools
  const exists = () => isComplete(file.path, file.size)
  if (await exists()) return false
  return withLock(file.lock, { signal, onWait: () => onEvent({ event: 'wait', file: file.name }) }, async () => {
    if (await exists()) return false
    await transfer(file, tools)
    await rename(file.incomplete, file.path)
    return true
  })
}

/**
 * Downloads a file, resumes it after every broken connection, and verifies it. When it rejects, the bytes that have
 * arrived stay in `incomplete`; when the hash is wrong, the file is deleted.
 * Rejects with Failure, or with the reason of `signal`.
 */
export async function transfer(
  { name, url, etag, incomplete, size, hash }: Transfer,
  { ask, retryRules, signal, onEvent }: TransferTools,
): Promise<void> {
  const file = await open(incomplete, constants.O_RDWR | constants.O_CREAT, 0o666)
  let wrong: Failure | undefined
  try {
    let have = (await file.stat()).size
    // A file that is too long is not a part of this one.
    if (have > size) await file.truncate((have = 0))
    let digest = begin(hash, size)
    if (have > 0) {
      onEvent({ event: 'resume', file: name, bytes: have })
      await readInto(digest, file, have, signal)
    }
    const restart = async () => {
      have = 0
      digest = begin(hash, size)
      await file.truncate(0)
    }
    let failedAttempts = 0
    while (have < size) {
      const before = have
      try {
        const range: Record<string, string> = have > 0 ? { range: `bytes=${have}-` } : {}
        if (have > 0 && etag) range['if-range'] = etag
        const { response, received, done } = await ask(url, range)
        try {
          const from = startOf(response, { size, have })
          if (from !== have) await restart()
          for await (const piece of response.body ?? []) {
            received()
            if (have + piece.length > size)
              throw invalidValue(`${new URL(url).host} sends more than the ${size} bytes of ${name}.`)
            await write(file, piece, have, name)
            digest.update(piece)
            have += piece.length
            onEvent({ event: 'progress', file: name, bytes: have })
          }
          if (have < size) throw new Failure('worker_error', `${new URL(url).host} ended the connection too early.`)
        } finally {
          done()
          // An unread body would keep the connection open.
          if (!response.bodyUsed) await response.body?.cancel()
        }
      } catch (thrown) {
        signal.throwIfAborted()
        const failure = thrown instanceof Failure ? thrown : hubUnreachable(new URL(url), thrown)
        failedAttempts = have > before ? 1 : failedAttempts + 1
        if (failure instanceof RangeFailure) await restart()
        if (!isTransient(failure) || failedAttempts >= retryRules.attempts) throw failure
        const waitMs = retryDelayMs(failure, failedAttempts, retryRules)
        onEvent({ event: 'retry', file: name, reason: failure.message, waitMs })
        await waitBeforeRetry(failure, failedAttempts, { retryRules, signal })
      }
    }
    await file.sync()
    const found = digest.digest('hex')
    if (hash && found !== hash.hex)
      wrong = new Failure(
        'worker_error',
        `The download of ${name} is damaged: its ${hash.kind === 'git' ? 'hash' : hash.kind} is ${found} and should be ${hash.hex}. It was deleted; run the same command again.`,
      )
  } finally {
    await file.close()
  }
  if (wrong) {
    await rm(incomplete, { force: true })
    throw wrong
  }
}

/** Returns the first byte of an answer. Throws RangeFailure if the file on the server has changed. */
function startOf(response: Response, { size, have }: { size: number; have: number }): number {
  if (response.status !== 206) return 0
  const [, from, total] = /^bytes (\d+)-\d+\/(\d+)$/.exec(response.headers.get('content-range') ?? '') ?? []
  if (Number(from) !== have || Number(total) !== size) throw new RangeFailure(new URL(response.url).host)
  return have
}

/** Opens the hash of a file. git prepends a header with the length. */
function begin(hash: TransferHash | null, size: number): Hash {
  return hash?.kind === 'git' ? createHash('sha1').update(`blob ${size}\0`) : createHash(hash?.kind ?? 'sha256')
}

async function readInto(digest: Hash, file: FileHandle, bytes: number, signal: AbortSignal): Promise<void> {
  const buffer = Buffer.allocUnsafe(1 << 20)
  for (let at = 0; at < bytes; ) {
    signal.throwIfAborted()
    const { bytesRead } = await file.read(buffer, 0, Math.min(buffer.length, bytes - at), at)
    if (bytesRead === 0) return
    digest.update(buffer.subarray(0, bytesRead))
    at += bytesRead
  }
}

async function write(file: FileHandle, piece: Uint8Array, at: number, name: string): Promise<void> {
  try {
    for (let done = 0; done < piece.length; )
      done += (await file.write(piece, done, piece.length - done, at + done)).bytesWritten
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'ENOSPC' && (cause as NodeJS.ErrnoException).code !== 'EDQUOT')
      throw new Failure('internal_error', `${name} cannot be written: ${(cause as Error).message}.`, { cause })
    throw new Failure(
      'disk_full',
      `The disk became full while ${name} was downloaded. Free some space, then run the same command again to resume the download.`,
      { cause },
    )
  }
}

/** Space that is left free on the disk. */
const reserve = 512 << 20

/**
 * Makes sure that the file system of `folder` has space for the missing bytes of these files.
 * Rejects with Failure `disk_full`, which names both sizes and the setting of another folder.
 */
export async function requireSpace(
  folder: string,
  files: readonly { size: number; incomplete: string }[],
  setting = 'HF_HOME',
): Promise<void> {
  let needed = 0
  for (const { size, incomplete } of files)
    needed += Math.max(0, size - ((await stat(incomplete).catch(() => null))?.size ?? 0))
  const { bavail, bsize } = await statfs(folder)
  const free = bavail * bsize
  if (needed > 0 && needed + reserve > free)
    throw new Failure(
      'disk_full',
      `The download needs ${megabytes(needed)} in ${folder}, where ${megabytes(free)} are free, and ${megabytes(reserve)} must stay free. Free some space, or choose another disk with ${setting}.`,
    )
}

const megabytes = (bytes: number): string => `${Math.ceil(bytes / 1e6).toLocaleString('en')} MB`
