import { ImagePlus, SendHorizontal, Square, X } from 'lucide-react'
import { type FormEvent, type KeyboardEvent, useRef, useState } from 'react'
import { Button, IconButton } from '../../../components/button.tsx'
import { controlClass } from '../../../components/fields.tsx'
import { Failed } from '../../../components/page.tsx'
import { playgroundText } from '../../../text/playground.ts'
import { FileInput, previewOf, useUpload } from '../form/files.tsx'
import type { Message } from './message.ts'

const text = playgroundText.chat

/** Stops an answer: not by the second press of a double click on the button that stood here. */
export const StopButton = ({ stop }: { stop: () => void }) => (
  <Button icon={Square} onClick={event => event.detail < 2 && stop()} label={text.stop} />
)

interface ComposerProps {
  sees: boolean
  busy: boolean
  send: (message: Message) => void
  stop: () => void
}

/** Where a message is written, with images for models that see. */
export function Composer({ sees, busy, send, stop }: ComposerProps) {
  const [written, write] = useState('')
  const [images, setImages] = useState<readonly string[]>([])
  const input = useRef<HTMLInputElement>(null)
  const upload = useUpload(id => setImages(now => [...now, id]))
  const empty = written.trim() === '' && images.length === 0

  function submit(event?: FormEvent): void {
    event?.preventDefault()
    if (empty || busy) return
    send({ role: 'user', text: written, images })
    write('')
    setImages([])
  }
  const press = (event: KeyboardEvent) => {
    // While characters are composed, Enter chooses one of them.
    if (event.key !== 'Enter' || event.shiftKey || event.nativeEvent.isComposing) return
    event.preventDefault()
    submit()
  }

  return (
    <form onSubmit={submit} className="space-y-2">
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
          rows={2}
          aria-label={text.message}
          placeholder={text.message}
          title={text.enter}
          value={written}
          onChange={event => write(event.target.value)}
          onKeyDown={press}
          className={`${controlClass} py-1.5`}
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
