import type { ConversationMessage } from '../store/store.ts'

/** Returns the messages from the first one to `last`, each the parent of the next; none for null. */
export function branchOf<Message extends Pick<ConversationMessage, 'id' | 'parent'>>(
  messages: readonly Message[],
  last: string | null,
): Message[] {
  const byId = new Map(messages.map(message => [message.id, message]))
  const branch: Message[] = []
  for (let next = last === null ? undefined : byId.get(last); next; ) {
    branch.push(next)
    next = next.parent === null ? undefined : byId.get(next.parent)
  }
  return branch.toReversed()
}
