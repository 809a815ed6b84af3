import { useState } from 'react'
import { Button } from '../../components/button.tsx'
import { controlClass } from '../../components/fields.tsx'
import { chatText as text } from '../../text/chat.ts'
import type { TreeMessage } from './conversation/tree.ts'

interface EditMessageProps {
  message: TreeMessage
  close: () => void
  send: (words: string) => void
}

/** A message that a person changes: what is sent is another version of it, with answers of its own. */
export function EditMessage({ message, close, send }: EditMessageProps) {
  const [words, write] = useState(message.text)
  return (
    <form
      className="space-y-2 py-2"
      onSubmit={event => {
        event.preventDefault()
        send(words)
      }}
      onKeyDown={event => {
        if (event.nativeEvent.isComposing) return
        if (event.key === 'Escape') close()
        else if (event.key === 'Enter' && !event.shiftKey && event.target instanceof HTMLTextAreaElement) {
          event.preventDefault()
          send(words)
        }
      }}
    >
      <textarea
        autoFocus
        rows={3}
        aria-label={text.edit}
        value={words}
        onChange={event => write(event.target.value)}
        className={`${controlClass} field-sizing-content max-h-80 py-1.5`}
      />
      <div className="flex justify-end gap-2">
        <Button small onClick={close} label={text.endEdit} />
        <Button small primary type="submit" disabled={words.trim() === ''} label={text.sendEdited} />
      </div>
    </form>
  )
}
