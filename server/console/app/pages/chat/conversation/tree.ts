import type { Message } from '../message/message.ts'

/** A message in the tree of a conversation: messages that follow the same one are versions of each other. */
export interface TreeMessage extends Message {
  id: string
  /** The message that it follows; null for the first one. */
  parent: string | null
  /** Unix seconds. */
  at: number
}

/** Returns the messages with others added, or put in the place of those with the same ids. */
export function withMessages(messages: readonly TreeMessage[], more: readonly TreeMessage[]): TreeMessage[] {
  const byId = new Map(messages.map(message => [message.id, message]))
  for (const message of more) byId.set(message.id, message)
  return [...byId.values()]
}

/** Returns the versions of a message, itself among them, in the order in which they were written. */
export const versionsOf = (
  messages: readonly TreeMessage[],
  { parent, role }: Pick<TreeMessage, 'parent' | 'role'>,
): TreeMessage[] => messages.filter(one => one.parent === parent && one.role === role)

/** Returns the function that finds the ids of the versions of a message, the same list for each of them. */
export function versionsIn(messages: readonly TreeMessage[]): (of: TreeMessage) => readonly string[] {
  const keyOf = ({ parent, role }: TreeMessage) => `${role} ${parent ?? ''}`
  const groups = Map.groupBy(messages, keyOf)
  const ids = new Map([...groups].map(([key, group]) => [key, group.map(({ id }) => id)]))
  return of => ids.get(keyOf(of)) ?? []
}

/** Returns the end of the newest branch through a message: of several that follow one, the last was written last. */
export function endOf(messages: readonly TreeMessage[], id: string): string {
  const newest = new Map(messages.map(message => [message.parent, message.id]))
  let end = id
  for (let next = newest.get(end); next !== undefined; next = newest.get(end)) end = next
  return end
}

/**
 * Returns the answers that are shown side by side: of each of the compared models the newest answer to the same question
 * as the last message. Fewer than two are no comparison.
 */
export function comparedWith(
  messages: readonly TreeMessage[],
  last: TreeMessage | undefined,
  models: readonly string[],
): TreeMessage[] {
  if (last?.role !== 'assistant' || models.length < 2) return []
  const versions = versionsOf(messages, last)
  const found = models.flatMap(model =>
    last.model === model ? last : (versions.findLast(one => one.model === model) ?? []),
  )
  return found.length > 1 && found.includes(last) ? found : []
}
