import { open } from 'node:fs/promises'
import { Failure } from '../failure.ts'
import type { Log } from '../log.ts'
import type { Config } from '../models/config.ts'
import { type FetchOptions, fetchRefusal, MediaTooLarge, openFetcher } from './fetch.ts'

interface DownloadOptions {
  media: Pick<Config['media'], 'allowed_hosts' | 'allowed_addresses'>
  log: Log
}

export interface DownloadedFile extends FetchOptions {
  /** Path of the new file. */
  path: string
}

/** Time for one file. Outputs of engines are larger than media of requests. */
const totalMs = 120_000

/**
 * Downloads files that engines name by URL. The rules are those for URLs of callers, because an engine may have the URL
 * from a prompt. Rejects with Failure `url_fetch_failed`, or with the reason of the signal.
 */
export function openDownload({ media, log }: DownloadOptions) {
  const fetcher = openFetcher({ media, log, totalMs })
  return async ({ path, ...options }: DownloadedFile): Promise<void> => {
    await using file = await open(path, 'wx', 0o600)
    try {
      await fetcher.fetch(options, piece => file.appendFile(piece))
    } catch (thrown) {
      throw thrown instanceof MediaTooLarge ? new Failure('url_fetch_failed', fetchRefusal) : thrown
    }
  }
}
