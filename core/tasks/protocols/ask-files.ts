import { isObject, jsonOf } from '../../json.ts'
import type { EngineCall, EngineListener } from '../../models/engine-call.ts'
import type { Lease } from '../../models/fleet.ts'
import { readAnswer } from './ask.ts'
import { Base64Reader } from './base64-reader.ts'
import { EngineFault } from './engine-messages.ts'
import { workerError } from './infer-generation.ts'

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
export async function askFiles(
  lease: Lease,
  call: Omit<EngineCall, 'stream' | 'maxBytes'>,
  { folder, prefix }: { folder: string; prefix: string },
  signal: AbortSignal,
): Promise<AnswerWithFiles> {
  const reader = new Base64Reader(folder, prefix)
  const asFailure = (thrown: unknown): never => {
    throw thrown instanceof EngineFault ? workerError(lease.modelId, thrown.message) : thrown
  }
  const streamed = { ...call, stream: true, maxBytes: Number.POSITIVE_INFINITY }
  try {
    const open = (listener: EngineListener) => {
      const exchange = lease.open(streamed, listener)
      reader.drained = () => exchange.resume()
      return exchange
    }
    const bytes = await readAnswer(open, signal, {
      chunk(piece, exchange) {
        if (!reader.feed(piece)) exchange.pause()
      },
      finished: () => reader.end(),
    })
    return { answer: objectIn(bytes), fileOf: value => reader.fileOf(value).catch(asFailure) }
  } catch (thrown) {
    reader.abandon()
    return asFailure(thrown)
  }
}

/** Not `parseAnswer`: a job that failed has an `error` too. */
function objectIn(bytes: Buffer): Record<string, unknown> {
  const value = jsonOf(bytes.toString('utf8'))
  if (isObject(value)) return value
  throw new EngineFault('did not answer with a JSON object')
}
