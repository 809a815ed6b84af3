import { api, refresh, useSession } from '../../../api/client.ts'
import { announce } from '../../../components/announcements.tsx'
import { Confirm, FormDialog } from '../../../components/dialog.tsx'
import { SelectField, TextField } from '../../../components/fields.tsx'
import { formText } from '../../../components/form-text.ts'
import { chatText } from '../../../text/chat.ts'
import { folderText as text } from '../../../text/folders.ts'
import { moveTo } from '../conversation/registry.ts'
import { browserStore } from '../store/browser-store.ts'
import { type ListedConversation, presetFolder } from '../store/stored.ts'

/** Fields of the names of folders. */
const nameField = { maxLength: 100, autoComplete: 'off' } as const

/** Throws for a name that no folder of conversations may have. */
function requireUsable(name: string): void {
  if (name === presetFolder) throw new Error(text.forPresets)
}

interface MoveDialogProps {
  conversation: ListedConversation
  folders: readonly string[]
  move: (id: string, folder: string | null) => Promise<void>
  close: () => void
}

/** Asks where to move a conversation: to a folder that is there, to a new one, or out of its folder. */
export const MoveDialog = ({ conversation: { id, title, folder }, folders, move, close }: MoveDialogProps) => (
  <FormDialog
    title={text.moveOne(title || chatText.untitled)}
    action={text.move}
    close={close}
    save={async form => {
      const made = formText(form, 'made')
      requireUsable(made)
      await move(id, made || formText(form, 'folder') || null)
      close()
    }}
  >
    {faultOf => (
      <>
        <SelectField
          name="folder"
          label={text.to}
          none={text.none}
          defaultValue={folder ?? ''}
          options={folders.filter(name => name !== presetFolder)}
        />
        <TextField {...nameField} name="made" label={text.made} hint={text.madeHint} error={faultOf('folder')} />
      </>
    )}
  </FormDialog>
)

interface FolderDialogProps {
  folder: string
  /** Whether conversations of the server are in it; others are in this browser. */
  isOnServer: boolean
  close: () => void
}

/** Gives all conversations of a folder, in both places, another one; null: none. */
async function moveAll(
  { folder, isOnServer }: Pick<FolderDialogProps, 'folder' | 'isOnServer'>,
  to: string | null,
  token: string,
): Promise<void> {
  if (isOnServer) await api.PATCH('/api/conversation-folders', { body: { folder, to } })
  for (const one of browserStore(token).list('')) if (one.folder === folder) await moveTo(one.id, to, token)
  await refresh('chat', 'list')
}

export function RenameFolder({ folder, isOnServer, close }: FolderDialogProps) {
  const { session } = useSession()
  return (
    <FormDialog
      title={text.rename(folder)}
      action={chatText.save}
      close={close}
      save={async form => {
        const name = formText(form, 'name')
        requireUsable(name)
        if (name !== folder) await moveAll({ folder, isOnServer }, name, session.token.id)
        announce('good', text.renamed(name))
        close()
      }}
    >
      {faultOf => (
        <TextField
          {...nameField}
          required
          pattern=".*\S.*"
          name="name"
          label={text.name}
          defaultValue={folder}
          error={faultOf('to')}
        />
      )}
    </FormDialog>
  )
}

export function RemoveFolder({ folder, isOnServer, close }: FolderDialogProps) {
  const { session } = useSession()
  return (
    <Confirm
      title={text.remove(folder)}
      action={chatText.delete}
      act={() => moveAll({ folder, isOnServer }, null, session.token.id)}
      close={close}
    >
      {text.removeText}
    </Confirm>
  )
}
