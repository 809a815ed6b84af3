import { PickerField } from '../../../components/picker-field.tsx'
import { chatText as text } from '../../../text/chat.ts'
import type { Presets } from './use-presets.ts'

/** The preset of a conversation; nothing while there are none. */
export const PresetChoice = ({ presets: { presets, chosen, choose } }: { presets: Presets }) =>
  presets.length === 0 ? null : (
    <div className="w-48 max-w-full">
      <PickerField
        isLabelHidden
        label={text.preset}
        value={chosen?.id ?? ''}
        none={text.noPreset}
        choices={presets}
        change={id => void choose(id)}
      />
    </div>
  )
