import { ImagePlus, SendHorizontal, X } from 'lucide-react'
import { type ClipboardEvent, type DragEvent, type FormEvent, type KeyboardEvent, useRef, useState } from 'react'
import { announce } from '../../components/announcements.tsx'
import { Button, IconButton } from '../../components/button.tsx'
import { controlClass } from '../../components/fields.tsx'
import { Failed } from '../../components/page.tsx'
import { chatText as text } from '../../text/chat.ts'
import { FileInput, previewOf, useUpload } from '../playground/form/files.tsx'
import type { Message } from './message/message.ts'
import { StopButton } from './message/stop-button.tsx'

interface ComposerProps {
  /** Whether the models take images. */
  sees: boolean
  busy: boolean
  /** Returns whether the message was sent; otherwise it stays. */
  send: (message: Message) => boolean
  stop: () => void
}

/** Where a message is written, with images for models that see: chosen, pasted or dropped. */
export function Composer({ sees, busy, send, stop }: ComposerProps) {
  const [written, write] = useState('')
  const [images, setImages] = useState<readonly string[]>([])
  const input = useRef<HTMLInputElement>(null)
  const upload = useUpload(id => setImages(now => [...now, id]))
  const empty = written.trim() === '' && images.length === 0

  function submit(event?: FormEvent): void {
    event?.preventDefault()
    if (empty || busy || upload.isPending) return
    if (!send({ role: 'user', text: written, ...(images.length > 0 ? { images } : {}) })) return
    write('')
    setImages([])
  }
  const press = (event: KeyboardEvent) => {
    // While characters are composed, Enter chooses one of them.
    if (event.key !== 'Enter' || event.shiftKey || event.nativeEvent.isComposing) return
    event.preventDefault()
    submit()
  }
  function take(event: ClipboardEvent | DragEvent, { files }: DataTransfer): void {
    const taken = [...files].filter(({ type }) => type.startsWith('image/'))
    if (taken.length === 0) return
    event.preventDefault()
    if (!sees) return announce('bad', text.noImages)
    for (const file of taken) upload.mutate(file)
  }

  return (
    <form
      onSubmit={submit}
      onPaste={event => take(event, event.clipboardData)}
      onDrop={event => take(event, event.dataTransfer)}
      onDragOver={event => event.preventDefault()}
      className="space-y-2"
    >
      {upload.error && <Failed failure={upload.error} />}
      {images.length > 0 && (
        <div className="flex flex-wrap gap-2">
          {images.map(id => (
            <span key={id} className="relative">
              <img src={previewOf(id)} alt={text.attached} className="border-line h-20 rounded-md border" />
              <IconButton
                icon={X}
                label={text.removeImage}
                className="bg-surface absolute top-0 right-0"
                onClick={() => setImages(images.filter(one => one !== id))}
              />
            </span>
          ))}
        </div>
      )}
      <div className="flex items-end gap-2">
        {sees && (
          <>
            <IconButton
              icon={ImagePlus}
              label={text.attach}
              disabled={upload.isPending}
              onClick={() => input.current!.click()}
            />
            <FileInput ref={input} kind="image" label={text.attach} take={upload.mutate} />
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
        {busy ? (
          <StopButton stop={stop} />
        ) : (
          <Button primary type="submit" icon={SendHorizontal} disabled={empty} label={text.send} />
        )}
      </div>
    </form>
  )
}
