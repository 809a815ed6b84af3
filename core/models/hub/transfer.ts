import { createHash, type Hash } from 'node:crypto'
import { constants } from 'node:fs'
import { type FileHandle, open, rm } from 'node:fs/promises'
import { Failure } from '../../failure.ts'
import type { HubFile } from './choose.ts'
import { type HubFetch, isTransient, type RetryRules, retryDelayMs, unreachable, waitBeforeRetry } from './requests.ts'

export interface Transfer {
  /** What messages call it. */
  name: string
  url: string
  /** The version that is meant, for servers that may have another by now. */
  etag?: string | null
  /** The file that grows. What an earlier call has left there is gone on from. */
  incomplete: string
  size: number
  /** Null where nobody has said what must arrive. */
  hash: HubFile['hash'] | null
}

export type TransferEvent =
  | { event: 'resume'; bytes: number }
  | { event: 'progress'; bytes: number }
  | { event: 'retry'; reason: string; waitMs: number }

/**
 * Brings a file to this machine, going on after every broken connection from where it was, and verifies it. When it
 * throws, what has arrived stays in `incomplete`, on disk and true; when the content is wrong nothing stays.
 * Throws Failure; what `signal` was aborted with, when it was.
 */
export async function transfer(
  { name, url, etag, incomplete, size, hash }: Transfer,
  {
    ask,
    retryRules,
    signal,
    onEvent,
  }: { ask: HubFetch; retryRules: RetryRules; signal: AbortSignal; onEvent: (event: TransferEvent) => void },
): Promise<void> {
  const file = await open(incomplete, constants.O_RDWR | constants.O_CREAT, 0o666)
  let wrong: Failure | undefined
  try {
    let have = (await file.stat()).size
    // No beginning of it, then. What stood behind the end would stay there.
    if (have > size) await file.truncate((have = 0))
    let digest = begin(hash, size)
    if (have > 0) {
      onEvent({ event: 'resume', bytes: have })
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
          const from = startOf(response, { name, size, have })
          if (from !== have) await restart()
          for await (const piece of response.body ?? []) {
            received()
            if (have + piece.length > size)
              throw new Failure(
                'invalid_value',
                `${new URL(url).host} sends more of ${name} than the ${size} bytes that it has.`,
              )
            await write(file, piece, have, name)
            digest.update(piece)
            have += piece.length
            onEvent({ event: 'progress', bytes: have })
          }
          if (have < size) throw new Failure('worker_error', `${new URL(url).host} ended the connection too early.`)
        } finally {
          done()
          // What nobody reads any more must not keep the connection.
          if (!response.bodyUsed) await response.body?.cancel()
        }
      } catch (thrown) {
        signal.throwIfAborted()
        const failure = thrown instanceof Failure ? thrown : unreachable(new URL(url), thrown)
        failedAttempts = have > before ? 1 : failedAttempts + 1
        if (!isTransient(failure) || failedAttempts >= retryRules.attempts) throw failure
        onEvent({ event: 'retry', reason: failure.message, waitMs: retryDelayMs(failure, failedAttempts, retryRules) })
        await waitBeforeRetry(failure, failedAttempts, { retryRules, signal })
      }
    }
    await file.sync()
    const found = digest.digest('hex')
    if (hash && found !== hash.hex)
      wrong = new Failure(
        'worker_error',
        `${name} has arrived damaged: its ${hash.kind === 'git' ? 'hash' : 'sha256'} is ${found} and should be ${hash.hex}. It was deleted; run the same command again.`,
      )
  } finally {
    await file.close()
  }
  if (wrong) {
    await rm(incomplete, { force: true })
    throw wrong
  }
}

/** From which byte on an answer is. Throws Failure for one that is not of this file any more. */
function startOf(response: Response, { name, size, have }: { name: string; size: number; have: number }): number {
  if (response.status !== 206) return 0
  const [, from, total] = /^bytes (\d+)-\d+\/(\d+)$/.exec(response.headers.get('content-range') ?? '') ?? []
  if (Number(from) !== have || Number(total) !== size)
    throw new Failure(
      'invalid_value',
      `${name} is not what it was on ${new URL(response.url).host}. Run the same command again.`,
    )
  return have
}

/** git hashes a file with its length before it. */
function begin(hash: HubFile['hash'] | null, size: number): Hash {
  return hash?.kind === 'git' ? createHash('sha1').update(`blob ${size}\0`) : createHash('sha256')
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
      `The disk became full while ${name} was downloaded. Free some space, then run the same command again: it goes on from there.`,
      { cause },
    )
  }
}
