import { useQuery } from '@tanstack/react-query'
import { useRef, useState } from 'react'
import { refresh, useSession } from '../../../api/client.ts'
import { announce } from '../../../components/announcements.tsx'
import { storeOf } from '../conversation/registry.ts'
import { type ListedPreset, listPresets, type PresetSettings, renamePreset, savePreset } from './presets.ts'

const nothing: PresetSettings = { system: '', parameters: {} }
const none: readonly ListedPreset[] = []

/** The presets of a person, and the one that was chosen last for a conversation; `apply` gives it the settings of one. */
export function usePresets(apply: (settings: PresetSettings) => void) {
  const { session } = useSession()
  const token = session.token.id
  const { data: presets = none } = useQuery({ queryKey: ['chat', 'presets'], queryFn: () => listPresets(token) })
  const [chosenId, setChosen] = useState('')
  const chosen = presets.find(({ id }) => id === chosenId)
  /** The id that was asked for last. */
  const wanted = useRef('')
  return {
    presets,
    chosen,
    /** Applies a preset; an empty id takes the settings of the chosen one away. */
    choose: async (id: string): Promise<void> => {
      wanted.current = id
      // Without a preset, the settings are those that a person has typed.
      if (id === '' && !chosen) return
      try {
        const settings = id === '' ? nothing : await storeOf(id, token).read(id)
        if (wanted.current !== id) return
        apply(settings)
        setChosen(id)
      } catch (thrown) {
        announce('bad', (thrown as Error).message)
        void refresh('chat', 'presets')
      }
    },
    save: async (name: string, settings: PresetSettings): Promise<void> => {
      const id = await savePreset(name, settings, token)
      await refresh('chat', 'presets')
      setChosen(id)
    },
    rename: async (id: string, name: string): Promise<void> => {
      await renamePreset(id, name, token)
      await refresh('chat', 'presets')
    },
    remove: async (id: string): Promise<void> => {
      await storeOf(id, token).remove(id)
      setChosen('')
      await refresh('chat', 'presets')
    },
  }
}
export type Presets = ReturnType<typeof usePresets>
