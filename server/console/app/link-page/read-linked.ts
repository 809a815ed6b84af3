import type { Schema } from '../api/schema.ts'
import { linkPageText as text } from '../text/link-page.ts'

/** Reads the conversation of a link. Rejects with an error whose message is shown as it is. */
export async function readLinked(path: string): Promise<Schema<'SharedConversation'>> {
  const answer = await fetch(`${path}/conversation`, { credentials: 'omit' }).catch(() => {
    throw new Error(text.unreachable)
  })
  const body = (await answer.json().catch(() => undefined)) as object | undefined
  if (answer.ok && body) return body as Schema<'SharedConversation'>
  const { error } = (body ?? {}) as Partial<Schema<'ErrorResponse'>>
  throw new Error(error?.message ?? text.unexplained(answer.status))
}
