import type { ConversationMessage } from '../store/store.ts'

/**
 * Returns the messages from the first one to `last`, each the parent of the next; with null all that have no parent are
 * left out as well: the branch is empty.
 */
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
