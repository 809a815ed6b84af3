import { canonicalHash } from '../canonical.ts'
import type { JsonBounds } from '../json.ts'
import { parseJson } from '../json.ts'
import type { Catalog } from '../models/catalog.ts'
import type { TextTask } from '../schemas/task.ts'
import type { Prepared, Shaped, Want } from './prepared.ts'
import { taskRecord } from './registry.ts'

/**
 * A caller's body, as it came, into what the engine of the chosen model is to be sent. Pure, and its input and output
 * are plain data: it runs inline for ordinary bodies and in a worker thread for large ones.
 * With `hash` the body's hash is found as well. Throws Failure for everything that is wrong with the body.
 */
export const prepare = (task: TextTask, body: Buffer, catalog: Catalog, bounds: JsonBounds, hash = false): Prepared => {
  const raw = parseJson(body, bounds)
  const bodyHash = hash ? canonicalHash(raw) : undefined
  return { ...taskRecord(task).prepare(raw, catalog), ...(bodyHash === undefined ? {} : { bodyHash }) }
}

/** The same for inputs that are a value already, as a durable job's are. */
export const prepareInputs = (task: TextTask, inputs: unknown, catalog: Catalog): Prepared =>
  taskRecord(task).prepare(inputs, catalog)

/** The engine's answers, whole, into the caller's answer. Pure; inline or in a worker thread as `prepare`. */
export const shape = (answers: Uint8Array[], want: Want): Shaped => taskRecord(want.task).shape(answers, want)
