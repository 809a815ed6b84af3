import { Paperclip, SendHorizontal } from 'lucide-react'
import { type FormEvent, type KeyboardEvent, useRef, useState } from 'react'
import { Button, IconButton } from '../../components/button.tsx'
import { controlClass } from '../../components/fields.tsx'
import { chatText as text } from '../../text/chat.ts'
import { AddedFiles } from './attachments/added-files.tsx'
import type { Attachments } from './attachments/use-attachments.ts'
import type { Message } from './message/message.ts'
import { StopButton } from './message/stop-button.tsx'
import { Dictation } from './voice/dictation.tsx'
import { useVoiceModel } from './voice/use-voice-model.ts'

interface ComposerProps {
  attachments: Attachments
  busy: boolean
  /** Resolves with whether the message was sent; otherwise it stays. */
  send: (message: Message) => Promise<boolean>
  stop: () => void
}

/** Where a message is written, with its files: chosen, pasted or dropped. */
export function Composer({ attachments, busy, send, stop }: ComposerProps) {
  const [written, write] = useState('')
  const transcriber = useVoiceModel('transcribe')
  const isSending = useRef(false)
  const input = useRef<HTMLInputElement>(null)
  const { added, isAllowed, isUploading, lacking, addAll } = attachments
  const empty = written.trim() === '' && added.length === 0

  async function submit(): Promise<void> {
    if (empty || busy || isUploading || lacking || isSending.current) return
    isSending.current = true
    try {
      const files = added.length > 0 ? { files: attachments.sent() } : {}
      if (!(await send({ role: 'user', text: written, ...files }))) return
      // What was written meanwhile stays.
      write(now => (now.startsWith(written) ? now.slice(written.length).trimStart() : now))
      attachments.clear()
    } finally {
      isSending.current = false
    }
  }
  const press = (event: KeyboardEvent) => {
    // While characters are composed, Enter chooses one of them.
    if (event.key !== 'Enter' || event.shiftKey || event.nativeEvent.isComposing) return
    event.preventDefault()
    void submit()
  }

  return (
    <form
      onSubmit={(event: FormEvent) => {
        event.preventDefault()
        void submit()
      }}
      onPaste={isAllowed ? attachments.paste : undefined}
      className="space-y-2"
    >
      <AddedFiles attachments={attachments} />
      <div className="flex items-end gap-2">
        {isAllowed && (
          <>
            <IconButton icon={Paperclip} label={text.attach} onClick={() => input.current!.click()} />
            <input
              ref={input}
              type="file"
              multiple
              hidden
              aria-label={text.attach}
              onChange={({ target }) => {
                addAll([...(target.files ?? [])])
                target.value = ''
              }}
            />
          </>
        )}
        <textarea
          // On a phone the keyboard would cover the conversation.
          autoFocus={matchMedia('(pointer: fine)').matches}
          rows={2}
          aria-label={text.message}
          placeholder={text.message}
          title={text.enter}
          value={written}
          onChange={event => write(event.target.value)}
          onKeyDown={press}
          className={`${controlClass} field-sizing-content max-h-60 resize-none py-1.5`}
        />
        {transcriber !== undefined && (
          <Dictation
            model={transcriber}
            take={words => write(before => (before.trim() === '' ? words : `${before.trimEnd()} ${words}`))}
          />
        )}
        {busy ? (
          <StopButton stop={stop} />
        ) : (
          <Button
            primary
            type="submit"
            icon={SendHorizontal}
            disabled={empty || isUploading || lacking !== undefined}
            label={text.send}
          />
        )}
      </div>
    </form>
  )
}
