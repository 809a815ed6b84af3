import type { EngineCall, Lease } from '../../models/fleet.ts'
import { Base64Reader } from './base64-reader.ts'
import { EngineFault, workerError } from './infer-generation.ts'

/** An answer in JSON whose base64 strings became files. */
export interface AnswerWithFiles {
  answer: Record<string, unknown>
  /** Resolves with the name of the file of one of its base64 strings. */
  fileOf: (value: unknown) => Promise<string>
}

/**
 * Sends a request and writes the base64 strings of its JSON answer as files into `folder`, while they arrive. Rejects with
 * Failure, or with the signal's reason.
 */
export function askFiles(
  lease: Lease,
  call: Omit<EngineCall, 'stream' | 'maxBytes'>,
  { folder, prefix }: { folder: string; prefix: string },
  signal: AbortSignal,
): Promise<AnswerWithFiles> {
  return new Promise((resolve, reject) => {
    const reader = new Base64Reader(folder, prefix)
    const asFailure = (thrown: unknown) =>
      thrown instanceof EngineFault ? workerError(lease.modelId, thrown.message) : thrown
    const over = (thrown: unknown) => {
      signal.removeEventListener('abort', onAbort)
      reader.abandon()
      reject(asFailure(thrown))
    }
    const onAbort = () => {
      exchange.abort()
      over(signal.reason)
    }
    const exchange = lease.open(
      { ...call, stream: true, maxBytes: Number.POSITIVE_INFINITY },
      {
        accepted() {},
        chunk(bytes) {
          try {
            if (!reader.feed(bytes)) exchange.pause()
          } catch (thrown) {
            exchange.abort()
            over(thrown)
          }
        },
        finished() {
          signal.removeEventListener('abort', onAbort)
          reader
            .end()
            .then(bytes => ({
              answer: parsed(bytes),
              fileOf: (value: unknown) =>
                reader.fileOf(value).catch((thrown: unknown) => {
                  throw asFailure(thrown)
                }),
            }))
            .then(resolve, over)
        },
        failed: over,
      },
    )
    reader.drained = () => exchange.resume()
    if (signal.aborted) onAbort()
    else signal.addEventListener('abort', onAbort, { once: true })
  })
}

/** Not `parseAnswer`: a job that failed has an `error` too. */
function parsed(bytes: Buffer): Record<string, unknown> {
  try {
    const value = JSON.parse(bytes.toString('utf8')) as Record<string, unknown> | null
    if (value !== null && typeof value === 'object') return value
  } catch {
    // Reported below.
  }
  throw new EngineFault('did not answer with a JSON object')
}
