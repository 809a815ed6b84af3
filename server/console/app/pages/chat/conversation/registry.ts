import { api, dataOf, queryClient } from '../../../api/client.ts'
import { onPersonEnd } from '../../../api/person-end.ts'
import { browserStore } from '../store/browser-store.ts'
import { serverStore } from '../store/server-store.ts'
import { type Conversation, type ConversationStore, emptyConversation, type Place, placeOf } from '../store/stored.ts'
import { watchLeaving } from './left-streams.ts'
import { type OpenedConversation, openConversation } from './opened.ts'

/** The conversations that this tab has open: the one that is shown, and those whose answers go on. */
const all = new Set<OpenedConversation>()
const shown = new Set<OpenedConversation>()
/** Ids of those that were deleted here: they are not read again while the page leaves them. */
const gone = new Set<string>()
/** The new one, until the page has learned where it is kept, and what it began with. */
let fresh: { opened: OpenedConversation; origin: string } | undefined

onPersonEnd(() => {
  for (const opened of all) opened.end()
  all.clear()
  fresh = undefined
})

watchLeaving()
addEventListener('pagehide', () => {
  for (const opened of all) void opened.keep()
})

/** What keeps conversations at a place. */
export const storeAt = (place: Place, token: string): ConversationStore =>
  place === 'server' ? serverStore : browserStore(token)

/** What keeps a conversation, by its id. */
export const storeOf = (id: string, token: string): ConversationStore => storeAt(placeOf(id), token)

/** Where a new conversation is kept: on the server where the organization stores content, else in this browser. */
export async function placeOfNew(): Promise<Place> {
  const { stored } = await queryClient.fetchQuery({
    queryKey: ['chat', 'stored'],
    queryFn: () => dataOf(api.GET('/api/conversations', { params: { query: { limit: 1 } } })),
    staleTime: 60_000,
  })
  return stored ? 'server' : 'browser'
}

/** Returns the open conversation with this id, if there is one. */
export const openedWith = (id: string): OpenedConversation | undefined =>
  [...all].find(opened => opened.state().id === id)

/** Opens a conversation that was read; one that is open stays as it is. */
export function openRead(id: string, read: Conversation, token: string): OpenedConversation {
  const open = openedWith(id)
  if (open) return open
  const opened = openConversation(read, () => Promise.resolve(storeOf(id, token)), id)
  all.add(opened)
  return opened
}

/**
 * Returns the new conversation, also if it was kept while another page was shown. `origin` is the job that the address names:
 * for another job another conversation begins.
 */
export function openFresh(token: string, origin: string, begun = emptyConversation): OpenedConversation {
  if (fresh?.origin === origin) return fresh.opened
  // It is known once it has been written.
  let store: Promise<ConversationStore> | undefined
  const opened = openConversation(
    begun,
    () =>
      (store ??= placeOfNew().then(
        place => storeAt(place, token),
        failure => {
          store = undefined
          throw failure
        },
      )),
  )
  all.add(opened)
  fresh = { opened, origin }
  return opened
}

/** Lets the next new conversation be another one; answers of the one before go on. */
export function forgetFresh(): void {
  fresh = undefined
}

/** Notes that a page shows the conversation. Returns the function that says that it no longer does. */
export function showing(opened: OpenedConversation): () => void {
  shown.add(opened)
  return () => {
    shown.delete(opened)
    void opened.keep().then(() => close(opened))
  }
}

/** Closes a conversation that no page shows, unless an answer of it goes on or something of it is not kept. */
function close(opened: OpenedConversation): void {
  const { growing, failure } = opened.state()
  if (!shown.has(opened) && fresh?.opened !== opened && growing.size === 0 && !failure) all.delete(opened)
}

/** Moves a conversation to a folder; null: to none. Rejects with an error whose message is shown as it is. */
export async function moveTo(id: string, folder: string | null, token: string): Promise<void> {
  const opened = openedWith(id)
  if (!opened) return storeOf(id, token).update(id, { folder })
  opened.change({ folder })
  await opened.keep()
  const { failure } = opened.state()
  if (failure) throw failure
}

/** Whether the conversation was deleted in this tab. */
export const isDropped = (id: string): boolean => gone.has(id)

/** Closes a conversation that is deleted. */
export function drop(id: string): void {
  gone.add(id)
  const opened = openedWith(id)
  if (!opened) return
  all.delete(opened)
  if (fresh?.opened === opened) fresh = undefined
  opened.drop()
}
