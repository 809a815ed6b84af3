import type { Api } from '../client/client.ts'
import { sizeText } from '../terminal/quantities-text.ts'
import { printable } from '../terminal/styled-line.ts'

type Model = Pick<Api['ModelLoad'], 'model_id' | 'saved_conversations'>

/** The models of which conversations are saved; none from an older server. */
export const savedOf = (models: readonly Model[]) =>
  models.flatMap(({ model_id, saved_conversations: saved }) =>
    saved && saved.conversations > 0 ? [{ model_id, ...saved }] : [],
  )

/** Returns a sentence for each model of which conversations are saved. */
export const savedNotes = (models: readonly Model[]): string[] =>
  savedOf(models).map(({ model_id, conversations, bytes }) => {
    const count = conversations === 1 ? '1 conversation is' : `${conversations} conversations are`
    return printable(`${model_id}: ${count} saved, ${sizeText(bytes)} of main memory.`)
  })
