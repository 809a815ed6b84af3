import { useSyncExternalStore } from 'react'
import { api, dataOf, refresh, type Schema, useSession } from '../../../api/client.ts'
import { metadataOf } from './feed.ts'
import { type Outbox, type OutboxStore, openOutbox, type Submission } from './outbox.ts'

/** The outboxes of this tab, by the id of the session's token. */
const outboxes = new Map<string, Outbox>()

/** Signing out removes what is kept (`infer.person.`). */
function storeFor(tokenId: string): OutboxStore {
  const name = `infer.person.playground.${tokenId}.outbox`
  return {
    read: () => sessionStorage.getItem(name),
    write: submissions =>
      submissions.length === 0
        ? sessionStorage.removeItem(name)
        : sessionStorage.setItem(name, JSON.stringify(submissions)),
  }
}

async function post(submission: Submission): Promise<void> {
  const { key, task, model, inputs } = submission
  const body = { task: task as Schema<'Job'>['task'], model_id: model, inputs, metadata: metadataOf(submission) }
  await dataOf(api.POST('/api/jobs', { body, headers: { 'idempotency-key': key } }))
  await refresh('playground', 'feed', task)
}

function outboxOf(tokenId: string): Outbox {
  const open = outboxes.get(tokenId)
  if (open) return open
  const outbox = openOutbox({ store: storeFor(tokenId), post })
  outboxes.set(tokenId, outbox)
  void outbox.resume()
  return outbox
}

/** The submissions of this tab that have no answer yet, and the functions that send and discard them. */
export function useOutbox() {
  const { session } = useSession()
  const outbox = outboxOf(session.token.id)
  const entries = useSyncExternalStore(outbox.watch, () => outbox.entries)
  return { entries, send: outbox.send, discard: outbox.discard }
}
