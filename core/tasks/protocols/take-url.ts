import { createWriteStream } from 'node:fs'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import type { Lease } from '../../models/fleet.ts'
import { openEngineStream } from './engine-stream.ts'
import { workerError } from './infer-generation.ts'
import type { Download } from './protocol.ts'

/** Bytes of one file. The output limit of the server applies when the file is stored. */
const maxFileBytes = 2 ** 31

interface Target {
  folder: string
  name: string
}

/** Origin for paths without one. It is never connected to. */
const engineOrigin = 'http://127.0.0.1'

/**
 * Stores the file at a URL that an engine answered. A path, or a URL of this machine, is one of the engine itself and is
 * requested from it; any other URL is fetched like a URL of a caller.
 */
export async function takeUrl(
  lease: Lease,
  url: string,
  target: Target,
  signal: AbortSignal,
  download: Download,
): Promise<void> {
  if (!URL.canParse(url, engineOrigin)) throw workerError(lease.modelId, 'answered with an invalid URL')
  const { hostname, pathname, search } = new URL(url, engineOrigin)
  if (hostname === '127.0.0.1' || hostname === 'localhost' || hostname === '0.0.0.0')
    return takeContent(lease, pathname + search, target, signal).then(() => {})
  await download({ url, path: join(target.folder, target.name), maxBytes: maxFileBytes, signal })
}

/** Streams a file of the engine to the disk, and resolves with its content type. */
export async function takeContent(lease: Lease, path: string, { folder, name }: Target, signal: AbortSignal) {
  const { bytes, contentType } = await openEngineStream(
    lease,
    { method: 'GET', path, body: '' },
    {
      maxBytes: maxFileBytes,
      tooLong: () => workerError(lease.modelId, `made a file of more than ${maxFileBytes} bytes`),
      empty: () => workerError(lease.modelId, 'made an empty file'),
    },
    signal,
  )
  await pipeline(bytes, createWriteStream(join(folder, name), { flags: 'wx', mode: 0o600 })).catch(
    (thrown: unknown) => {
      // If the stream failed before it was read, the pipeline knows only that it was closed.
      throw bytes.errored ?? thrown
    },
  )
  return contentType
}
