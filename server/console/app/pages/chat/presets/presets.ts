import { api } from '../../../api/client.ts'
import { everyPage } from '../../../api/every-page.ts'
import { chatText } from '../../../text/chat.ts'
import { placeOfNew, storeAt, storeOf } from '../conversation/registry.ts'
import { browserStore } from '../store/browser-store.ts'
import { type Conversation, emptyConversation, isPreset, presetFolder } from '../store/stored.ts'

/** A preset in the list: a conversation without messages, kept where conversations are. */
export interface ListedPreset {
  id: string
  name: string
}

/** What a preset gives a conversation. */
export type PresetSettings = Pick<Conversation, 'system' | 'parameters'>

/** The presets of a person, by their names. Rejects with ApiFailure. */
export async function listPresets(token: string): Promise<ListedPreset[]> {
  const pages = await everyPage(after =>
    api.GET('/api/conversations', { params: { query: { limit: 100, folder: presetFolder, after } } }),
  )
  const onServer = pages
    .flatMap(({ conversations }) => conversations.filter(isPreset))
    .map(({ id, title }): ListedPreset => ({ id, name: title }))
  return [...onServer, ...browserStore(token).presets()].toSorted((a, b) => a.name.localeCompare(b.name))
}

/** Keeps settings under a name: those of a preset with this name are replaced. Resolves with its id. */
export async function savePreset(name: string, { system, parameters }: PresetSettings, token: string): Promise<string> {
  // Another tab may have saved or deleted some since they were shown.
  const known = (await listPresets(token)).find(preset => preset.name === name)
  if (known) {
    await storeOf(known.id, token).update(known.id, { system, parameters })
    return known.id
  }
  const store = storeAt(await placeOfNew(), token)
  return (await store.create({ ...emptyConversation, title: name, system, parameters })).id
}

/** Gives a preset another name. Rejects with an error whose message is shown as it is. */
export async function renamePreset(id: string, name: string, token: string): Promise<void> {
  const known = (await listPresets(token)).find(preset => preset.name === name)
  if (known && known.id !== id) throw new Error(chatText.presetExists(name))
  await storeOf(id, token).update(id, { title: name })
}
