import { canonicalHash } from '../canonical.ts'
import type { JsonBounds } from '../json.ts'
import { parseJson } from '../json.ts'
import type { Catalog } from '../models/catalog.ts'
import type { TextTask } from '../schemas/task.ts'
import { prepareChat, shapeChat } from './chat/chat-completion.ts'
import { prepareCompletion, shapeCompletion } from './completion/completion.ts'
import { prepareEmbeddings, shapeEmbeddings } from './embeddings/embeddings.ts'
import type { Prepared, Shaped, Want } from './prepared.ts'
import { prepareRerank, shapeRerank } from './rerank/rerank.ts'
import { prepareScore, shapeScore } from './score/score.ts'
import { shapeTranscription } from './transcription/transcription-shape.ts'

const prepares: Record<TextTask, (raw: unknown, catalog: Catalog) => Prepared> = {
  'std/chat-completion': prepareChat,
  'std/completion': prepareCompletion,
  'std/embeddings': prepareEmbeddings,
  'std/rerank': prepareRerank,
  'std/score': prepareScore,
}

/**
 * A caller's body, as it came, into what the engine of the chosen model is to be sent. Pure, and its input and output
 * are plain data: it runs inline for ordinary bodies and in a worker thread for large ones.
 * With `hash` the body's hash is found as well. Throws Failure for everything that is wrong with the body.
 */
export const prepare = (task: TextTask, body: Buffer, catalog: Catalog, bounds: JsonBounds, hash = false): Prepared => {
  const raw = parseJson(body, bounds)
  const bodyHash = hash ? canonicalHash(raw) : undefined
  return { ...prepares[task](raw, catalog), ...(bodyHash === undefined ? {} : { bodyHash }) }
}

/** The same for inputs that are a value already, as a durable job's are. */
export const prepareInputs = (task: TextTask, inputs: unknown, catalog: Catalog): Prepared =>
  prepares[task](inputs, catalog)

/** The engine's answers, whole, into the caller's answer. Pure; inline or in a worker thread as `prepare`. */
export function shape(answers: Uint8Array[], want: Want): Shaped {
  switch (want.task) {
    case 'std/chat-completion':
      return shapeChat(answers[0]!, want)
    case 'std/completion':
      return shapeCompletion(answers, want)
    case 'std/embeddings':
      return shapeEmbeddings(answers[0]!, want)
    case 'std/rerank':
      return shapeRerank(answers[0]!, want)
    case 'std/score':
      return shapeScore(answers, want)
    case 'std/audio-transcription':
    case 'std/audio-translation':
      return shapeTranscription(answers[0]!, want)
  }
}
