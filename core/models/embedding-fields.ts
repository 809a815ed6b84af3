import { z } from 'zod'
import { tasksBy } from '../schemas/task.ts'

/** The other keys of the model in the example. */
const e5 = { id: 'e5', source: '/models/e5-large-v2-q8_0.gguf', tasks: tasksBy('embed').slice(0, 1) }
const prefixes = { query: 'query: ', document: 'passage: ' }
const prefix = z.string().min(1).max(1_000).optional()

/** Keys of a model that turns text into vectors. */
export const embeddingFields = {
  embedding_prefixes: z
    .strictObject({
      query: prefix.meta({
        description: 'Text before each input that is a query.',
        example: prefixes.query,
        with: { ...e5, embedding_prefixes: prefixes },
        absent: 'none',
      }),
      document: prefix.meta({
        description: 'Text before each input that is a document.',
        example: prefixes.document,
        with: { ...e5, embedding_prefixes: prefixes },
        absent: 'none',
      }),
    })
    .optional()
    .meta({
      description:
        'Texts that the model expects before its inputs, for requests that say with `input_type` or `task` whether these are queries or documents.',
      example: prefixes,
      with: e5,
      absent: 'none: texts are embedded as they are sent',
    }),
}
