import { Pencil, Save, Trash2 } from 'lucide-react'
import { useState } from 'react'
import { announce } from '../../../components/announcements.tsx'
import { Button } from '../../../components/button.tsx'
import { Confirm, FormDialog } from '../../../components/dialog.tsx'
import { nameField, TextField } from '../../../components/fields.tsx'
import { formText } from '../../../components/form-text.ts'
import { chatText as text } from '../../../text/chat.ts'
import type { PresetSettings } from './presets.ts'
import type { Presets } from './use-presets.ts'

interface PresetActionsProps {
  presets: Presets
  /** What is saved. */
  settings: PresetSettings
}

/** Saves the settings of a conversation as a preset, and deletes the chosen one. */
export function PresetActions({ presets: { chosen, save, rename, remove }, settings }: PresetActionsProps) {
  const [isSaving, setSaving] = useState(false)
  const [isRenaming, setRenaming] = useState(false)
  const [isRemoving, setRemoving] = useState(false)
  return (
    <div className="flex flex-wrap gap-2">
      <Button small icon={Save} onClick={() => setSaving(true)} label={text.savePreset} />
      {chosen && (
        <>
          <Button small icon={Pencil} onClick={() => setRenaming(true)} label={text.renamePreset(chosen.name)} />
          <Button small danger icon={Trash2} onClick={() => setRemoving(true)} label={text.removePreset(chosen.name)} />
        </>
      )}
      {isSaving && (
        <FormDialog
          title={text.savePreset}
          action={text.save}
          about={<p className="text-muted">{text.presetHint}</p>}
          close={() => setSaving(false)}
          save={async form => {
            const name = formText(form, nameField.name)
            await save(name, settings)
            announce('good', text.presetSaved(name))
            setSaving(false)
          }}
        >
          {faultOf => <NameField name={chosen?.name ?? ''} error={faultOf('title')} />}
        </FormDialog>
      )}
      {isRenaming && chosen && (
        <FormDialog
          title={text.renamePreset(chosen.name)}
          action={text.save}
          close={() => setRenaming(false)}
          save={async form => {
            const name = formText(form, nameField.name)
            await rename(chosen.id, name)
            announce('good', text.presetSaved(name))
            setRenaming(false)
          }}
        >
          {faultOf => <NameField name={chosen.name} error={faultOf('title')} />}
        </FormDialog>
      )}
      {isRemoving && chosen && (
        <Confirm
          title={text.removePreset(chosen.name)}
          action={text.delete}
          act={() => remove(chosen.id)}
          close={() => setRemoving(false)}
        >
          {text.removePresetText}
        </Confirm>
      )}
    </div>
  )
}

const NameField = ({ name, error }: { name: string; error: string | undefined }) => (
  <TextField label={text.presetName} {...nameField} pattern=".*\S.*" defaultValue={name} error={error} />
)
