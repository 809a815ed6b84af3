import { Braces, Download, PanelLeft, Pencil, Share2, SlidersHorizontal, Trash2 } from 'lucide-react'
import { useState } from 'react'
import { markdownOf } from '../../../../../core/conversations/markdown.ts'
import { announce, useAction } from '../../components/announcements.tsx'
import { Button, IconButton } from '../../components/button.tsx'
import { FormDialog } from '../../components/dialog.tsx'
import { downloadText, fileNameOf } from '../../components/download.ts'
import { nameField, TextField } from '../../components/fields.tsx'
import { formText } from '../../components/form-text.ts'
import { loaded } from '../../components/loaded.tsx'
import { useShownName } from '../../components/page-title.ts'
import { chatText as text } from '../../text/chat.ts'
import { shareText } from '../../text/share.ts'
import type { OpenedConversation, OpenedState } from './conversation/opened.ts'
import { drop, storeOf } from './conversation/registry.ts'
import type { ShareDialogProps } from './share/share-dialog.tsx'
import { apiChange } from './store/server-store.ts'
import { type Conversation, type Place, placeOf } from './store/stored.ts'

const ShareDialog = loaded<ShareDialogProps>(() => import('./share/share-dialog.tsx'), null)

/** A conversation that was deleted, which can be brought back to where it was. */
export interface Removed {
  conversation: Conversation
  place: Place
}

export interface HeadingProps {
  opened: OpenedConversation
  state: OpenedState
  removed: (removed: Removed) => void
  token: string
  /** Shows the list of conversations, which a narrow screen does not show beside it. */
  showList: () => void
  settings: boolean
  showSettings: (shown: boolean) => void
}

/** The title of a conversation, and what can be done with it. */
export function Heading({ opened, state, removed, token, showList, settings, showSettings }: HeadingProps) {
  const { id, title, growing } = state
  const [isRenaming, setRenaming] = useState(false)
  const [isSharing, setSharing] = useState(false)
  const isShareable = id !== undefined && placeOf(id) === 'server'
  useShownName(title || undefined)
  const keepAll = async () => {
    await opened.keep()
    const { failure } = opened.state()
    if (failure) throw failure
  }
  const remove = useAction(
    async (kept: string) => {
      // Nothing may be written to it after it is gone.
      await opened.keep()
      await storeOf(kept, token).remove(kept)
      const { folder, system, parameters, messages, current } = opened.state()
      const conversation = { title, folder, system, parameters, messages, current }
      // The page leaves it first: one that is closed would be read again.
      removed({ conversation, place: placeOf(kept) })
      drop(kept)
    },
    () => text.deleted(title || text.untitled),
    ['chat', 'list'],
  )
  const switchSettings = {
    icon: SlidersHorizontal,
    'aria-expanded': settings,
    onClick: () => showSettings(!settings),
    label: settings ? text.hideSettings : text.showSettings,
  }
  return (
    <div className="flex items-center gap-1">
      <IconButton className="md:hidden" icon={PanelLeft} label={text.showList} onClick={showList} />
      <h1 className="min-w-0 flex-1 truncate text-xl font-semibold tracking-tight">
        {id === undefined ? text.title : title || text.untitled}
      </h1>
      {id !== undefined && (
        <>
          <IconButton icon={Pencil} label={text.rename} onClick={() => setRenaming(true)} />
          {isShareable && <IconButton icon={Share2} label={shareText.share} onClick={() => setSharing(true)} />}
          <IconButton icon={Download} label={text.download} onClick={() => download(state)} />
          <IconButton icon={Braces} label={text.downloadJson} onClick={() => downloadJson(state)} />
          <IconButton
            danger
            icon={Trash2}
            label={text.delete}
            disabled={remove.isPending || growing.size > 0}
            onClick={() => remove.mutate(id)}
          />
        </>
      )}
      <Button className="max-sm:hidden" {...switchSettings} />
      <IconButton className="sm:hidden" {...switchSettings} />
      {isSharing && isShareable && <ShareDialog id={id} keep={keepAll} close={() => setSharing(false)} />}
      {isRenaming && (
        <FormDialog
          title={text.rename}
          action={text.save}
          close={() => setRenaming(false)}
          save={async form => {
            opened.change({ title: formText(form, nameField.name) })
            await opened.keep()
            announce('good', text.renamed)
            setRenaming(false)
          }}
        >
          {faultOf => <TextField label={text.nameLabel} {...nameField} defaultValue={title} error={faultOf('title')} />}
        </FormDialog>
      )}
    </div>
  )
}

/** Lets the browser save the branch that is shown. */
function download({ title, system, current, messages }: Conversation): void {
  const stored = messages.map(({ id, parent, text: words, role, model, reasoning, toolCalls }) => ({
    id,
    parent,
    text: words,
    details: JSON.stringify({ role, model, reasoning, tool_calls: toolCalls }),
  }))
  const shown = { title: title || text.untitled, system, currentMessage: current }
  downloadText(`${fileBase(title)}.md`, markdownOf(shown, stored), 'text/markdown')
}

/** Lets the browser save all branches, in the form of the API: a script can create the conversation again. */
const downloadJson = ({ title, system, parameters, current, messages }: Conversation): void =>
  downloadText(
    `${fileBase(title)}.json`,
    `${JSON.stringify(apiChange({ title, system, parameters, current, messages }), null, 2)}\n`,
    'application/json',
  )

const fileBase = (title: string): string => fileNameOf(title) || 'conversation'
